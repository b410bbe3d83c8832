"""What a server or a driver says, without the secret that it repeats."""

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "***"
_MIN_LENGTH = 8  # characters of a part of a base64 text: shorter ones also stand in other words


def list_forms(secret: str) -> list[str]:
    """How a secret is written: plain, percent-encoded, escaped in JSON, hexadecimal, inside base64; longest first.

    In base64 a text looks otherwise after one or two bytes; of each such form it is the part that depends on the text
    alone.
    """
    raw = secret.encode("utf-8", "surrogatepass")
    found = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], raw.hex()}
    found |= {raw.hex().upper(), json.dumps(secret, ensure_ascii=False)[1:-1], secret.replace("/", "\\/")}
    for before in range(3):
        first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            if len(part := encode(bytes(before) + raw)[first:last].decode()) >= _MIN_LENGTH:
                found.add(part)
    return sorted(filter(None, found), key=lambda form: (-len(form), form))


def mask_secrets(text: str, secrets: Iterable[str | None]) -> str:
    """The text with `MASK` where a secret stood, in any of its forms."""
    for secret in filter(None, secrets):
        for form in list_forms(secret):
            text = text.replace(form, MASK)
    return text
