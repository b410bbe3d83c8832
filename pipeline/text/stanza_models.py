"""Stanza's pipelines with the models in a folder, on the CPU; nothing is downloaded."""

from pathlib import Path
from typing import Any

from pipeline.errors import Missing


def load_pipeline(folder: Path, lang: str, processors: str, *, alternative: str = "", **options: Any) -> Any:
    """Stanza's pipeline of a language with these processors, from the folder of stanza's resources.json.

    Missing if models are not there, with how to get them and the alternative.
    """
    remedy = f"stanza.download({lang!r}, model_dir='{folder}'){alternative}"
    if not (folder / "resources.json").is_file():
        raise Missing(f"stanza has no models in {folder}: {remedy}")
    import stanza
    from stanza.pipeline.core import PipelineRequirementsException

    common = {"download_method": None, "use_gpu": False, "verbose": False}
    try:
        pipeline = stanza.Pipeline(lang, dir=str(folder), processors=processors, **common, **options)
    except (OSError, ValueError, KeyError, PipelineRequirementsException) as why:
        raise Missing(f"stanza's models of {lang} in {folder} are not complete ({why}): {remedy}") from why
    # one that its list does not name is left out with a warning
    if lacking := [name for name in processors.split(",") if name not in pipeline.processors]:
        raise Missing(f"stanza's models of {lang} in {folder} are without {', '.join(lacking)}: {remedy}")
    return pipeline
