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
    variants = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], raw.hex()}
    variants |= {raw.hex().upper(), json.dumps(secret, ensure_ascii=False)[1:-1], secret.replace("/", "\\/")}
    for shift in range(3):
        start, end = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            if len(part := encode(bytes(shift) + raw)[start:end].decode()) >= _MIN_LENGTH:
                variants.add(part)
    return sorted(filter(None, variants), key=lambda form: (-len(form), form))


def mask_secrets(text: str, secrets: Iterable[str | None]) -> str:
    """The text with `MASK` where a secret stood, in any of its forms."""
    for secret in filter(None, secrets):
        for form in list_forms(secret):
            text = text.replace(form, MASK)
    return text
