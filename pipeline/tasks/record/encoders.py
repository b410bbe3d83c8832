"""Load the encoder in force, or the one that a model was trained with, wherever its folder is now."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import settings
from pipeline.errors import BadInput, Missing
from pipeline.io.atomic import write_text

if TYPE_CHECKING:
    from pipeline.models.encoder import Encoder


def load_encoder(
    config: Mapping[str, Any] | None = None, name: str | None = None, precision: str | None = None, **options: Any
) -> "Encoder":
    """Load the encoder that a model's configuration describes, else one by name, by default the encoder in force.

    The options are those of `models.encoder.load`. BadInput if neither the setting nor the recorded name leads to files
    with the recorded hash.
    """
    from pipeline.models import encoder as encoders

    ref, prompt = name or settings.encoder(), settings.encoder_prompt()
    if config:
        ref, prompt = find_encoder(config["encoder"], config["encoder_revision"]), config.get("encoder_prompt", "")
    encoder = encoders.load(ref, precision or choose_precision(), settings.threads(), prompt=prompt, **options)
    if config:  # a model trained before 0.2 has a path for a name, or the hub's commit for a hash
        return replace(encoder, name=config["encoder"], revision=config["encoder_revision"])
    if Path(ref).is_dir():
        with suppress(OSError):  # the home may be read-only
            write_text(_locate_record(encoder.revision), str(Path(ref).resolve()))
    return encoder


def choose_precision(*, for_scores: bool = False) -> str:
    """Return the precision of encoders; `auto` is float32, but for scores bfloat16 where the hardware is fast at it."""
    if (precision := settings.precision()) != "auto":
        return precision
    from pipeline.models import encoder

    return "bfloat16" if for_scores and encoder.is_bfloat16_fast() else "float32"


def _locate_record(revision: str) -> Path:
    return settings.scratch("encoders") / revision


def find_encoder(name: str, revision: str) -> str:
    """Find the encoder whose files have this hash: in force, of this name, or where it was last on this machine."""
    from pipeline.models import characters
    from pipeline.models.encoder import EMBEDDED

    setting = settings.encoder()
    if name == characters.NAME or (len(revision) == 40 and not Path(name).exists()):
        return f"{name}@{revision}"
    refs = [name, setting] if name == EMBEDDED else [setting, name]
    with suppress(OSError):
        refs.append(_locate_record(revision).read_text(encoding="utf-8"))
    for ref in refs:
        if hash_encoder(ref) == revision:
            return ref
    current = (hash_encoder(setting) or "none")[:12]
    raise BadInput(
        f"the model was trained with the encoder {Path(name).name}, whose files have the hash {revision[:12]}; "
        f"UNDERTONE_ENCODER names {setting}, whose files have the hash {current}. Set it to a folder whose "
        "files have the first hash"
    )


def hash_encoder(ref: str) -> str | None:
    """Return the hash of an encoder's files; None if they are not on this machine."""
    from pipeline.models import characters, encoder, pinned

    if ref == characters.NAME:
        return characters.hash_lists()[-1]
    with suppress(BadInput, Missing):  # no folder any more
        return pinned.hash_model_folder(encoder.locate_folder(ref))
    return None
