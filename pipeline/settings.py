"""The one place that reads the environment.

Each setting is a function, read when asked for, so that a test or a task can set its own. All have defaults that
work on one machine; `undertone doctor` prints what is in force.
"""

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadInput

# polars plans Iceberg scans with pyiceberg here; said aloud, it does not warn at every scan
os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")

CONTACT = "https://example.org/undertone-bot"  # replaced by UNDERTONE_CONTACT before a live crawl


def _get(name: str, default: str) -> str:
    return os.environ.get(f"UNDERTONE_{name}") or default


def _secret(name: str) -> str | None:
    """A secret, or what stands in the file that UNDERTONE_<name>_FILE names: a container is given secrets as files."""
    if given := _get(name, ""):
        return given
    if not (path := _get(f"{name}_FILE", "")):
        return None
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as why:  # to go on without a key would drop user ids
        raise BadInput(f"UNDERTONE_{name}_FILE: {path} cannot be read ({type(why).__name__})") from None


def _database(name: str, file: str) -> str:
    """A database's address, of a file from the root; of one that is none not even the fault is told, since it would
    hold the password.
    """
    given = _get(name, "")
    if not given:
        return f"sqlite:///{home() / file}"
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise BadInput(
            f"UNDERTONE_{name} is no address of a database; write it like "
            "postgresql+psycopg2://user:password@host/name, with %40 for @ and %2F for / in the password"
        ) from None
    if url.get_backend_name() == "sqlite" and url.database and not url.database.startswith((":memory:", "file:")):
        return url.set(database=str(Path(url.database).expanduser().absolute())).render_as_string(hide_password=False)
    return given


def home() -> Path:
    """Where everything of this installation lies (UNDERTONE_HOME), absolute because Airflow refuses relative paths."""
    return Path(_get("HOME", "~/.undertone")).expanduser().resolve()


class Attempt(NamedTuple):
    """An attempt at a task: `dag.task.map_index`, and when it began, as an ISO time of UTC."""

    task: str
    began: str


def begin(task: str, began: datetime) -> None:
    """Say which attempt at a task this process is from now on; dags/dag_defaults.py says so before every task."""
    os.environ["UNDERTONE_ATTEMPT"] = f"{task} {began.astimezone(UTC).isoformat()}"


def attempt() -> Attempt | None:
    """The attempt at a task that this process is (UNDERTONE_ATTEMPT, set by `begin`); None outside Airflow."""
    task, _, began = _get("ATTEMPT", "").partition(" ")
    return Attempt(task, began) if began else None


def debug() -> bool:
    """Whether a bug prints its traceback (UNDERTONE_DEBUG, any value)."""
    return bool(_get("DEBUG", ""))


def catalog_uri() -> str:
    """SQLAlchemy address of the Iceberg catalog (UNDERTONE_CATALOG): a SQLite file, or PostgreSQL for a team."""
    return _database("CATALOG", "catalog.db")


def warehouse() -> str:
    """Root of the tables (UNDERTONE_WAREHOUSE): a folder, or s3://bucket/prefix with the usual AWS_* variables."""
    given = _get("WAREHOUSE", str(home() / "warehouse")).rstrip("/")
    return given if "://" in given else str(Path(given).expanduser().resolve())


def spool_uri() -> str:
    """SQLAlchemy address of the fetcher's spool (UNDERTONE_SPOOL), where a page and its cursor are one transaction."""
    return _database("SPOOL", "spool.db")


def airflow_task() -> dict[str, str]:
    """Names of the DAG, task and run that this process works for, which Airflow sets; none outside Airflow."""
    names = {"dag": "AIRFLOW_CTX_DAG_ID", "task": "AIRFLOW_CTX_TASK_ID", "run": "AIRFLOW_CTX_DAG_RUN_ID"}
    return {name: os.environ[variable] for name, variable in names.items() if variable in os.environ}


def alert_url() -> str | None:
    """Webhook that gets a JSON note of each missed deadline and failed task (UNDERTONE_ALERT_URL, or a file of it
    in UNDERTONE_ALERT_URL_FILE); none: log lines.
    """
    return _secret("ALERT_URL")


def deadline_hours() -> float | None:
    """Hours in which a run of the daily chain should be done, from when it was queued (UNDERTONE_DEADLINE_HOURS).

    None, the default: nobody is told. `airflow dags test` ends with an error for a DAG that has a deadline
    (apache/airflow#73428, in 3.3.2), so a scheduler's installation says it wants them.
    """
    given = _get("DEADLINE_HOURS", "")
    if not given:
        return None
    try:
        hours = float(given)
    except ValueError:
        hours = 0.0
    if not 0 < hours < 24 * 365:
        raise BadInput(f"UNDERTONE_DEADLINE_HOURS: expected hours above 0, found {given!r}")
    return hours


def import_limits() -> tuple[int, int]:
    """How much of an imported file may be in memory at once: bytes of a file that is read as one, unpacked
    (UNDERTONE_IMPORT_BYTES), and characters of a line or cell (UNDERTONE_IMPORT_CHARACTERS).
    """
    from pipeline.io.lines import LIMITS

    return _whole("IMPORT_BYTES", LIMITS.whole), _whole("IMPORT_CHARACTERS", LIMITS.line)


def import_memory() -> int:
    """Megabytes of memory that an import may take for more than some milliseconds (UNDERTONE_IMPORT_MEMORY)."""
    return _whole("IMPORT_MEMORY", 900)


def import_seconds() -> int:
    """CPU seconds that a file of an import may take, beside one for each 100 kB (UNDERTONE_IMPORT_SECONDS)."""
    return _whole("IMPORT_SECONDS", 10)


def _whole(name: str, default: int) -> int:
    given = _get(name, str(default))
    if not given.isascii() or not given.isdecimal() or not 0 < int(given) < 1 << 62:
        raise BadInput(f"UNDERTONE_{name}: expected a whole number above 0, found {given[:40]!r}")
    return int(given)


def inbox() -> Path:
    """Folder the daily run looks into: <inbox>/<source>/<day>/* (UNDERTONE_INBOX)."""
    return Path(_get("INBOX", str(home() / "inbox"))).expanduser().resolve()


def models() -> Path:
    """Folder of trained models (UNDERTONE_MODELS), one folder a content hash."""
    return Path(_get("MODELS", str(home() / "models"))).expanduser().resolve()


def scratch(name: str) -> Path:
    """Folder of what can be made again, `embeddings`, `training` or `duckdb`, below UNDERTONE_HOME; swept by age."""
    return home() / "scratch" / name


def reports() -> Path:
    """Folder of the HTML reports (UNDERTONE_REPORTS)."""
    return Path(_get("REPORTS", str(home() / "reports"))).expanduser().resolve()


def labelling() -> Path:
    """Folder of what goes to raters and comes from them as files (UNDERTONE_LABELLING), a folder a project."""
    return Path(_get("LABELLING", str(home() / "labelling"))).expanduser().resolve()


def releases() -> Path:
    """Folder of published data sets (UNDERTONE_RELEASES), a folder a release."""
    return Path(_get("RELEASES", str(home() / "releases"))).expanduser().resolve()


def studio_uri() -> str | None:
    """Address of a Label Studio (UNDERTONE_STUDIO_URL), such as http://127.0.0.1:8080."""
    return os.environ.get("UNDERTONE_STUDIO_URL") or None


def studio_key() -> str | None:
    """Token of Label Studio's API (UNDERTONE_STUDIO_KEY, or a file of it in UNDERTONE_STUDIO_KEY_FILE)."""
    return _secret("STUDIO_KEY")


def resources() -> Path:
    """Folder of downloaded linguistic resources (UNDERTONE_RESOURCES)."""
    return Path(_get("RESOURCES", str(home() / "resources"))).expanduser().resolve()


def user_key() -> bytes | None:
    """Key of the HMAC over user ids (UNDERTONE_USER_KEY, or a file of it in UNDERTONE_USER_KEY_FILE); without one,
    user ids are dropped.
    """
    value = _secret("USER_KEY")
    return value.encode() if value else None


def encoder() -> str:
    """Sentence encoder (UNDERTONE_ENCODER): `embedded`, a local folder, or a hub name with @revision."""
    return _get("ENCODER", "embedded")


def masked_lm(lang: str, given: str | None = None) -> str:
    """Masked language model for a language (UNDERTONE_MASKED_LM): `count`, a folder, or a hub name with @revision.

    One for all languages, or several: `en=bert-base-cased@<commit>,zh=bert-base-chinese@<commit>`; those not named have
    `count`. What is `given` goes before the environment, which tells of the languages that it does not name.
    """
    for told in (given, _get("MASKED_LM", "count")):
        named: dict[str, str] = dict(re.findall(r"(?:^|,)\s*([a-z]{2,3})=([^,]+)", told or ""))
        if told and (not named or lang in named):
            return named.get(lang, told).strip()
    return "count"


def precision() -> str:
    """Precision of encoders (UNDERTONE_PRECISION): float32, or bfloat16 where the hardware is fast at it."""
    return _get("PRECISION", "float32")


def contact() -> str:
    """Page or mail address that the crawler's User-Agent names (UNDERTONE_CONTACT)."""
    return _get("CONTACT", CONTACT)


def llm_uri() -> str | None:
    """Address of a language-model service of OpenAI's shape (UNDERTONE_LLM_URL), such as http://127.0.0.1:8000/v1."""
    return os.environ.get("UNDERTONE_LLM_URL") or None


def llm_key() -> str | None:
    """Key of the language-model service (UNDERTONE_LLM_KEY, or a file of it in UNDERTONE_LLM_KEY_FILE); servers of
    one's own often need none.
    """
    return _secret("LLM_KEY")


def llm_ledger() -> str:
    """SQLAlchemy address of the ledger of answers (UNDERTONE_LLM_LEDGER), where each is kept and paid for once."""
    return _database("LLM_LEDGER", "ledger.db")


def llm_prices() -> Path | None:
    """A price table of one's own (UNDERTONE_LLM_PRICES), which goes before the shipped one."""
    value = os.environ.get("UNDERTONE_LLM_PRICES")
    return Path(value).expanduser().resolve() if value else None


def llm_max_tokens() -> int | None:
    """Most tokens of an answer (UNDERTONE_LLM_MAX_TOKENS); None: as `pipeline.llm.service.limits` says."""
    return _whole("LLM_MAX_TOKENS", 0) if _get("LLM_MAX_TOKENS", "") else None


def llm_prompts() -> Path | None:
    """A folder of prompt files of one's own (UNDERTONE_LLM_PROMPTS), which go before the shipped ones."""
    value = os.environ.get("UNDERTONE_LLM_PROMPTS")
    return Path(value).expanduser().resolve() if value else None


def threads() -> int:
    """Batches a process encodes at once (OMP_NUM_THREADS): all cores by default, one where tasks run side by side."""
    return int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)


def environment() -> dict[str, str]:
    """A copy of the process environment, for child processes."""
    return dict(os.environ)


def absolute() -> dict[str, str]:
    """The settings that are paths, as environment variables that mean the same wherever a process runs.

    An address of a database, which may hold a password, is among them only if it was set.
    """
    paths = {
        "HOME": home, "WAREHOUSE": warehouse, "INBOX": inbox, "MODELS": models, "REPORTS": reports,
        "LABELLING": labelling, "RELEASES": releases, "RESOURCES": resources,
    }  # fmt: skip
    given = {
        "CATALOG": catalog_uri, "LLM_LEDGER": llm_ledger, "SPOOL": spool_uri,
        "LLM_PRICES": llm_prices, "LLM_PROMPTS": llm_prompts,
    }  # fmt: skip
    found = {**paths, **{name: path for name, path in given.items() if _get(name, "")}}
    secrets = {
        name: str(Path(value).expanduser().absolute())
        for name, value in os.environ.items()
        if name.startswith("UNDERTONE_") and name.endswith("_FILE") and value
    }
    return {**secrets, **{f"UNDERTONE_{name}": str(path()) for name, path in found.items()}}


def aws_endpoint() -> str | None:
    """Endpoint of an S3-compatible store (AWS_ENDPOINT_URL); polars and pyarrow both read it."""
    return os.environ.get("AWS_ENDPOINT_URL")


def aws_region() -> str | None:
    """Region of the object store (AWS_REGION, AWS_DEFAULT_REGION); any word for a store of one's own."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
