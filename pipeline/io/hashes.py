"""Names of content: SHA-256 of files, BLAKE2 of texts."""

import hashlib
from pathlib import Path


def hash_file(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_text(text: str) -> str:
    """128-bit BLAKE2 of a text, as 32 hexadecimal digits."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def hash_number(text: str) -> int:
    """64-bit BLAKE2 of a text as a number: the same in each run."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
