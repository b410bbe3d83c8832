"""The doctor: what is installed and found, and what to do about each thing that is not."""

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import polars as pl
from typer import Exit

from pipeline import private, settings, warehouse
from pipeline.commands.operate import stack
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Json
from pipeline.errors import Missing, UndertoneError
from pipeline.explanations import explain
from pipeline.tables import TABLES

FIELDS = ("thing", "is_found", "detail", "remedy", "needed")  # of what was examined
Result = tuple[bool, str, str]  # whether the thing is there, a detail, a remedy
_TRAIN = "pip install 'undertone-text[train]'"
_PACKAGES = {
    "apache-airflow": "optional, for the DAGs: pip install 'undertone-text[airflow]'",
    **dict.fromkeys(("torch", "sentence-transformers", "stanza"), _TRAIN),
    **dict.fromkeys(("nltk", "jieba"), "pip install undertone-text"),
    "rjieba": "optional, a faster jieba: pip install 'undertone-text[fast]'",
    "celery": "optional, for several workers: pip install 'undertone-text[distributed]'",
}
_NEEDED = {"Python", "sentence encoder", "tables", "selftest", *_PACKAGES} - {"apache-airflow", "rjieba", "celery"}


def doctor(as_json: Json = False) -> None:
    """Check what is installed, and print what to do about each missing part. Exit code 1 if a needed part is missing.

    Example: `undertone doctor`
    """
    findings = examine()
    if as_json:
        console.show(findings, as_json)
    for thing, is_found, detail, remedy, is_needed in () if as_json else findings.iter_rows():
        mark = "ok     " if is_found else "MISSING" if is_needed else "absent "
        console.out.print(f"{mark}  {thing}: {detail}", markup=False, soft_wrap=True)
        if not is_found and remedy:
            console.out.print(f"           -> {remedy}", markup=False, soft_wrap=True)
    raise Exit(int(findings.filter("needed", ~pl.col("is_found")).height > 0))


def examine() -> pl.DataFrame:
    """Examine all parts, in the order a person would mend them; one that is broken is a finding and stops no other."""
    parts: dict[str, Callable[[], Result]] = {
        "Python": _examine_python,
        **{name: partial(_examine_package, name, remedy) for name, remedy in _PACKAGES.items()},
        "sentence encoder": _examine_encoder, "WordNet": _examine_wordnet, "stanza models": _examine_stanza,
        "GPU": _examine_gpu, "key for user ids": _examine_user_key, "tables": _examine_tables,
        "private files": _examine_private, "ImpScore model": _examine_model, "selftest": _examine_scores,
        "erased training texts": _examine_erased, "language model": _examine_language_model,
        "Airflow": _examine_airflow,
    }  # fmt: skip
    return pl.DataFrame([(name, *_run(part), name in _NEEDED) for name, part in parts.items()], FIELDS, orient="row")


def _run(part: Callable[[], Result]) -> Result:
    try:
        return part()
    except Exception as error:  # noqa: BLE001 - a doctor that stops at the first broken part is of no use
        code, message = explain(error) or console.bug(error)
        return False, message, "undertone init" if code == Missing.exit_code else ""


def _examine_python() -> Result:
    return (3, 11) <= sys.version_info[:2] <= (3, 13), sys.version.split()[0], "use Python 3.11, 3.12 or 3.13"


def _examine_package(name: str, remedy: str) -> Result:
    try:
        return True, version(name), ""
    except PackageNotFoundError:
        return False, "not installed", remedy


def _examine_encoder() -> Result:
    name = settings.encoder()
    if name != "embedded" and not Path(name).is_dir():
        from huggingface_hub import try_to_load_from_cache

        hub, _, revision = name.partition("@")
        path = try_to_load_from_cache(hub, "model.safetensors", revision=revision or None)
        remedy = f"fetch it with HF_HUB_OFFLINE=0: hf download {hub} --revision {revision or '<commit>'}"
        return isinstance(path, str) and bool(revision), name, remedy
    try:
        from pipeline.models.encoder import locate_folder
        from pipeline.models.pinned import hash_model_folder

        folder = locate_folder(name)
        return True, f"{folder} ({hash_model_folder(folder)[:12]})", ""
    except (UndertoneError, ImportError) as error:
        return False, str(error), _TRAIN


def _examine_wordnet() -> Result:
    import nltk

    folders = [Path(path) / "corpora" for path in [*nltk.data.path, str(settings.resources() / "nltk_data")]]
    place = next((f for f in folders if (f / "wordnet").is_dir() or (f / "wordnet.zip").is_file()), None)
    remedy = "python -m nltk.downloader wordnet, or in a clone make wordnet (used by METEOR and ReCAM)"
    return place is not None, str(place or "not found"), remedy


def _examine_stanza() -> Result:
    folder = settings.resources() / "stanza"
    is_found = (folder / "resources.json").is_file()
    remedy = f"python -c \"import stanza; stanza.download('en', model_dir='{folder}')\" (nltk is used without it)"
    return is_found, str(folder) if is_found else "not found", remedy


def _examine_gpu() -> Result:
    if importlib.util.find_spec("torch") is None:
        return False, "torch is not installed", ""
    import torch

    is_found = torch.cuda.is_available()
    return is_found, torch.cuda.get_device_name(0) if is_found else "none; the CPU is used", ""


def _examine_user_key() -> Result:
    is_set = settings.user_key() is not None
    remedy = "set UNDERTONE_USER_KEY to a long random text to tell users apart; without it user ids are dropped"
    return is_set, "set" if is_set else "not set", remedy


def _examine_tables() -> Result:
    warehouse.load_table("comments")  # without a catalog this says so once
    counts, broken = {}, []
    for name in TABLES:
        try:
            counts[name] = int(warehouse.scan(name).select(pl.len()).collect().item())
        except Exception as error:  # noqa: BLE001 - each broken table is named
            broken.append(f"{name}: {(explain(error) or console.bug(error)).message}")
    if broken:
        return False, f"{len(broken)} cannot be read: {'; '.join(broken)}", "undertone maintain --dry-run"
    return True, f"{settings.warehouse()} ({counts['comments']:,} comments, {counts['scores']:,} scores)", ""


def _examine_private() -> Result:
    paths = private.list_readable(settings.home())
    detail = f"{len(paths):,} paths that others may read, such as {paths[0]}" if paths else "the home is yours alone"
    return not paths, detail, "undertone init takes these rights away"


def _examine_model() -> Result:
    from pipeline.tasks.impscore import scoring

    try:
        model_id = scoring.choose_model().load().model_id
    except UndertoneError as error:
        remedy = f"copy its folder to {settings.models()}, or train one: undertone train impscore --promote"
        return False, str(error), remedy
    return True, f"{model_id[:12]}{'' if (settings.models() / model_id).is_dir() else ', shipped'}", ""


def _examine_scores() -> Result:
    from pipeline.tasks.impscore import scoring

    rows, remedy = scoring.compare_scores(), "undertone selftest names the scores and versions"
    return bool(rows["is_within"].all()), scoring.summarise_comparison(rows), remedy


def _examine_erased() -> Result:
    try:
        warehouse.load_table("comments")
    except Missing:  # without a catalog no model of the tables is in force
        return True, "in no model in force", ""
    flagged = warehouse.query("select kind, erased_ratio from models_flagged where is_promoted order by kind, model_id")
    shares = ", ".join(f"{kind} {share:.2%}" for kind, share in flagged.iter_rows())
    remedy = "models in force were trained on texts that were erased since; train them again (view models_flagged)"
    return not shares, shares or "in no model in force", remedy


def _examine_language_model() -> Result:
    values = {"an address": settings.llm_uri(), "a key": settings.llm_key()}
    names = " and ".join(name for name, value in values.items() if value)
    remedy = "set UNDERTONE_LLM_URL (and UNDERTONE_LLM_KEY), or the Airflow connection undertone_llm, to ask one"
    return bool(names), names or "not set", remedy


def _examine_airflow() -> Result:
    running = stack.state()
    return running is not None, running["url"] if running else "not running", "optional: undertone up"
