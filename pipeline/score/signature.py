"""The signature of a score: what made it, as text. Scores with different signatures are not to be compared (X-02)."""

from collections.abc import Sequence

from pipeline import __version__

IMPLICITNESS = "implicitness"
ANY = "any"  # the head for every language


def implicitness(model_id: str, encoder: str, revision: str, precision: str, lang: str) -> str:
    """Build the signature of implicitness; languages other than English are marked as an extension (X-07)."""
    scope = lang if lang == "en" else f"{lang}(extension)"
    source = f"model:{model_id[:12]}|encoder:{encoder}@{revision[:12]}|{precision}"
    return f"{IMPLICITNESS}|{source}|lang:{scope}|undertone:{__version__}"


def choose_head(lang: str, names: Sequence[str]) -> str:
    """Choose the head for a language: its own, else the one for any language, else the English one."""
    return next(name for name in (lang, ANY, "en", *names) if name in names)
