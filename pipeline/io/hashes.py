"""Names of content: SHA-256 of files."""

import hashlib
from pathlib import Path


def hash_file(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
