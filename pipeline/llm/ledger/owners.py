"""Owners of claims: a name for a process of a machine, and whether that process still runs."""

import os
import socket
import uuid
from functools import cache
from pathlib import Path

import psutil


def create_name() -> str:
    """Create an owner's name: this machine, this process, its start, and a number that each owner has for itself."""
    return f"{_machine()}:{os.getpid()}:{_start_time(os.getpid())}:{uuid.uuid4().hex[:8]}"


def has_ended(name: str) -> bool:
    """Return whether an owner was a process of this machine that has ended."""
    machine, _, rest = name.partition(":")
    if machine != _machine():
        return False
    pid, start_time = rest.split(":")[:2]
    return _start_time(int(pid)) != start_time


@cache
def _machine() -> str:
    """Name this machine, or this container of it: process ids mean nothing across their borders."""
    space = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()}/{space.readlink() if space.is_symlink() else ''}".replace(":", "")


def _start_time(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "" if stat[0] in "ZX" else stat[19]
    except OSError:
        pass
    try:
        return "" if Path("/proc/self/stat").is_file() else f"{psutil.Process(pid).create_time():.0f}"
    except psutil.Error:
        return ""
