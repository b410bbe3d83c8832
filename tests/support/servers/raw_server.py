"""A loopback server of raw bytes: it reads a request and hands the socket to a function that misbehaves."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class RawServer:
    """Serves on a free port of 127.0.0.1 within `with`; `count` is of requests. It waits after each read."""

    def __init__(self, answer: Callable[[socket.socket], None], seconds: float = 0.0) -> None:
        self.answer, self.count, self.received, self._seconds = answer, 0, b"", seconds
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._start(self._accept)
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, tb: TracebackType | None) -> None:
        for sock in [self._listener, *self._open]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(10)

    def _start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self._open.append(sock)
                self._start(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            head, _, body = sock.recv(65_536).partition(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            while len(body) < length:
                body += sock.recv(65_536)
                time.sleep(self._seconds)
            self.count += 1
            self.received += head + body
            self.answer(sock)


def drip(sock: socket.socket, start: bytes, piece: bytes) -> None:
    """Send a piece every twentieth of a second, for ever."""
    sock.sendall(start)
    while True:
        sock.sendall(piece)
        time.sleep(0.05)


def pour(sock: socket.socket, start: bytes, piece: bytes) -> None:
    """Send a piece as fast as it is taken, for ever."""
    sock.sendall(start)
    while True:
        sock.sendall(piece)
