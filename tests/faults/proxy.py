"""A relay of TCP on loopback that can be told to refuse, cut, stall or answer 503."""

import contextlib
import select
import socket
import threading
from types import TracebackType
from typing import Self

_BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Proxy:
    """Relays connections to a port while it is used in a `with`.

    Attributes:
        mode: what happens to connections, old and new: `pass`, `cut` (closed at once), `stall` (open, and nothing
            comes) or `busy` (an answer of 503).
        port: its own.
    """

    def __init__(self, host: str, port: int) -> None:
        self.mode = "pass"
        self._address = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._server.getsockname()[1])
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, tb: TracebackType | None) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        self._server.close()

    def _accept(self) -> None:
        while not self._is_over.is_set():
            if select.select([self._server], [], [], 0.05)[0]:
                thread = threading.Thread(target=self._serve, args=(self._server.accept()[0],))
                self._threads.append(thread)
                thread.start()

    def _serve(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError), socket.create_connection(self._address, timeout=5) as far:
            while not self._is_over.is_set():
                if self.mode == "cut":
                    return
                if self.mode == "stall":
                    self._is_over.wait(0.05)
                    continue
                for side in select.select([near, far], [], [], 0.05)[0]:
                    data = side.recv(65536)
                    if not data:
                        return
                    if self.mode == "busy" and side is near:
                        near.sendall(_BUSY)
                        return
                    (far if side is near else near).sendall(data)
