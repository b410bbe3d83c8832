"""The doctor: what is installed and found, and what to do about each thing that is not."""

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline import private, settings, warehouse
from pipeline.commands.operate import stack
from pipeline.commands.terminal import failures
from pipeline.errors import Missing, UndertoneError
from pipeline.explanations import explain


class Finding(NamedTuple):
    """One thing looked at. `needed` things that are absent make the doctor exit with 1."""

    thing: str
    is_found: bool
    detail: str
    remedy: str
    needed: bool = True


def examine() -> list[Finding]:
    """Everything, in the order a person would mend it; a part that is broken is a finding and stops no other."""
    parts: dict[str, Callable[[], Finding]] = {
        "Python": _python, **{name: partial(_package, name, *about) for name, about in _PACKAGES.items()},
        "sentence encoder": _encoder, "WordNet": _wordnet, "stanza models": _stanza, "GPU": _gpu,
        "key for user ids": _user_key, "tables": _tables, "private files": _private, "ImpScore model": _model,
        "erased training texts": _forgotten, "language model": _language_model, "Airflow": _airflow,
    }  # fmt: skip
    return [_examined(name, examine_part) for name, examine_part in parts.items()]


def _examined(name: str, examine_part: Callable[[], Finding]) -> Finding:
    try:
        return examine_part()
    except Exception as error:  # noqa: BLE001 - a doctor that stops at the first broken part is of no use
        code, message = explain(error) or failures.bug(error)
        remedy = "undertone init" if code == Missing.exit_code else ""
        return Finding(name, False, message, remedy, needed=name in _NEEDED)


def _python() -> Finding:
    ok = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Finding("Python", ok, sys.version.split()[0], "use Python 3.11, 3.12 or 3.13")


_TRAIN = "pip install 'undertone[train]'"
_PACKAGES = {
    "apache-airflow": ("pip install 'undertone[airflow]'", True), "torch": (_TRAIN, True),
    "sentence-transformers": (_TRAIN, True), "stanza": (_TRAIN, True), "nltk": ("make setup", True),
    "jieba": ("make setup", True), "rjieba": ("optional, a faster jieba: pip install 'undertone[fast]'", False),
    "celery": ("optional, for several workers: pip install 'undertone[distributed]'", False),
}  # fmt: skip
_NEEDED = {"sentence encoder", "tables"} | {name for name, (_, is_needed) in _PACKAGES.items() if is_needed}


def _package(name: str, remedy: str, is_needed: bool) -> Finding:
    try:
        return Finding(name, True, version(name), "", is_needed)
    except PackageNotFoundError:
        return Finding(name, False, "not installed", remedy, is_needed)


def _encoder() -> Finding:
    name = settings.encoder()
    if name != "embedded" and not Path(name).is_dir():
        return _hub_encoder(name)
    try:
        from pipeline.models.encoder import EMBEDDED_SHA256, embedded_folder

        detail = f"{embedded_folder()} ({EMBEDDED_SHA256[:12]})" if name == "embedded" else name
        return Finding("sentence encoder", True, detail, "")
    except (UndertoneError, ImportError) as why:
        return Finding("sentence encoder", False, str(why), _TRAIN)


def _hub_encoder(name: str) -> Finding:
    from huggingface_hub import try_to_load_from_cache

    hub, _, revision = name.partition("@")
    kept = try_to_load_from_cache(hub, "model.safetensors", revision=revision or None)
    remedy = f"fetch it with HF_HUB_OFFLINE=0: hf download {hub} --revision {revision or '<commit>'}"
    return Finding("sentence encoder", isinstance(kept, str) and bool(revision), name, remedy)


def _wordnet() -> Finding:
    import nltk

    folders = [Path(p) / "corpora" for p in [*nltk.data.path, str(settings.resources() / "nltk_data")]]
    place = next((f for f in folders if (f / "wordnet").is_dir() or (f / "wordnet.zip").is_file()), None)
    remedy = "make wordnet, or python -m nltk.downloader wordnet (used by METEOR and ReCAM)"
    return Finding("WordNet", place is not None, str(place or "not found"), remedy, needed=False)


def _stanza() -> Finding:
    folder = settings.resources() / "stanza"
    ok = (folder / "resources.json").is_file()
    remedy = f"python -c \"import stanza; stanza.download('en', model_dir='{folder}')\" (nltk is used without it)"
    return Finding("stanza models", ok, str(folder) if ok else "not found", remedy, needed=False)


def _gpu() -> Finding:
    if importlib.util.find_spec("torch") is None:
        return Finding("GPU", False, "torch is not installed", "", needed=False)
    import torch

    ok = torch.cuda.is_available()
    return Finding("GPU", ok, torch.cuda.get_device_name(0) if ok else "none; the CPU is used", "", needed=False)


def _user_key() -> Finding:
    ok = settings.user_key() is not None
    remedy = "set UNDERTONE_USER_KEY to a long random text to tell users apart; without it user ids are dropped"
    return Finding("key for user ids", ok, "set" if ok else "not set", remedy, needed=False)


def _tables() -> Finding:
    warehouse.table("comments")  # without a catalog this says so once
    counts, broken = {}, []
    for name in warehouse.names():
        try:
            counts[name] = int(warehouse.scan(name).select(pl.len()).collect().item())
        except Exception as error:  # noqa: BLE001 - each broken table is named
            broken.append(f"{name}: {(explain(error) or failures.bug(error)).message}")
    if broken:
        detail = f"{len(broken)} cannot be read: {'; '.join(broken)}"
        return Finding("tables", False, detail, "undertone maintain --dry-run")
    count = counts["comments"] + counts["scores"]
    return Finding("tables", True, f"{settings.warehouse()} ({count:,} comments and scores)", "")


def _private() -> Finding:
    paths = private.list_readable(settings.home())
    detail = f"{len(paths):,} paths that others may read, such as {paths[0]}" if paths else "the home is yours alone"
    return Finding("private files", not paths, detail, "undertone init takes these rights away", needed=False)


def _model() -> Finding:
    from pipeline.tasks.impscore import in_force

    try:
        model_id = in_force.load_model(in_force.find_model_id(None)).model_id
    except UndertoneError as why:
        remedy = f"copy its folder to {settings.models()}, or train one: undertone train impscore --promote"
        return Finding("ImpScore model", False, str(why), remedy, needed=False)
    own = (settings.models() / model_id).is_dir()
    return Finding("ImpScore model", True, f"{model_id[:12]}{'' if own else ', shipped'}", "", needed=False)


def _forgotten() -> Finding:
    from pipeline.tasks.record import model_registry

    found = model_registry.list_flagged().filter("is_promoted")
    told = ", ".join(f"{kind} {share:.2%}" for kind, share in found.select("kind", "erased_ratio").iter_rows())
    remedy = "models in force were trained on texts that were erased since; train them again (view models_flagged)"
    return Finding("erased training texts", not told, told or "in no model in force", remedy, needed=False)


def _language_model() -> Finding:
    named = [what for what, value in (("an address", settings.llm_uri()), ("a key", settings.llm_key())) if value]
    remedy = "set UNDERTONE_LLM_URL (and UNDERTONE_LLM_KEY), or the Airflow connection undertone_llm, to ask one"
    return Finding("language model", bool(named), " and ".join(named) or "not set", remedy, needed=False)


def _airflow() -> Finding:
    running = stack.state()
    return Finding(
        "Airflow", running is not None, running["url"] if running else "not running", "make up", needed=False
    )
