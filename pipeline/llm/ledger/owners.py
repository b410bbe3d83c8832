"""Who asks: a name for a process of a machine, and whether that process is still there."""

import os
import socket
import uuid
from functools import cache
from pathlib import Path

import psutil


def me() -> str:
    """A name for who asks: this machine, this process, and a number that no other asking of the process has."""
    return f"{_machine()}:{os.getpid()}:{_started(os.getpid())}:{uuid.uuid4().hex[:8]}"


def is_gone(name: str) -> bool:
    """Whether an owner was a process of this machine that has ended."""
    machine, _, rest = name.partition(":")
    if machine != _machine():
        return False
    pid, started = rest.split(":")[:2]
    return _started(int(pid)) != started


@cache
def _machine() -> str:
    """This machine, or this container of it: process ids mean nothing across their borders."""
    space = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()}/{space.readlink() if space.is_symlink() else ''}".replace(":", "")


def _started(pid: int) -> str:
    """When a living process began, in whatever unit the system has; empty where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "" if stat[0] in "ZX" else stat[19]
    except OSError:
        pass
    try:
        return "" if Path("/proc/self/stat").is_file() else f"{psutil.Process(pid).create_time():.0f}"
    except psutil.Error:
        return ""
