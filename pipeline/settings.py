"""The one place that reads the environment.

Each setting is a function that reads its variable when it is called; `undertone doctor` prints the values.
"""

import os
import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadInput, Missing

# polars plans Iceberg scans with pyiceberg here; if that is set, it does not warn at every scan
os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")
# polars decodes up to 512 row groups ahead of what takes them, which are whole tables of ours; two keep it as fast
os.environ.setdefault("POLARS_ROW_GROUP_PREFETCH_SIZE", "2")

SCHEDULES = {  # of the DAGs: a cron expression (UTC), `off`, or the table whose new days start it
    "collect": "0 0 * * *",
    "tokenize": "comments",
    "score": "tokens",
    "report": "scores",
    "recam": "off",  # or articles; these three train for minutes to hours
    "commenting": "off",  # or tokens
    "ndd": "off",  # or comments
    "impscore": "0 2 * * 1",
    "judge": "0 4 * * 1",
    "studies": "0 8 * * 1",
    "csd": "off",
    "heal": "0 6 * * *",
    "maintain": "0 4 * * 0",
    "forget": "off",
}
CONTACT = "https://example.org/undertone-bot"  # replaced by UNDERTONE_CONTACT before a live crawl


def _get(name: str, default: str = "") -> str:
    return os.environ.get(f"UNDERTONE_{name}") or default


def _resolve(path: str) -> Path:
    return Path(path).expanduser().resolve()


def _folder(name: str) -> Path:
    return _resolve(_get(name, str(home() / name.lower())))


def _optional(name: str) -> str | None:
    return _get(name) or None


def _optional_path(name: str) -> Path | None:
    return _resolve(path) if (path := _get(name)) else None


def _secret(name: str) -> str | None:
    """Return a secret, or the content of the file in UNDERTONE_<name>_FILE: a container gets its secrets as files."""
    if value := _get(name):
        return value
    if not (path := _get(f"{name}_FILE")):
        return None
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:  # to go on without a key would drop user ids
        raise BadInput(f"UNDERTONE_{name}_FILE: {path} cannot be read ({type(error).__name__})") from None


def _database(name: str, file: str) -> str:
    if not (address := _get(name)):
        return f"sqlite:///{home() / file}"
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        form = "postgresql+psycopg2://user:password@host/name, with %40 for @ and %2F for / in the password"
        raise BadInput(f"UNDERTONE_{name} is no address of a database; write it like {form}") from None
    if url.get_backend_name() == "sqlite" and url.database and not url.database.startswith((":memory:", "file:")):
        return url.set(database=str(Path(url.database).expanduser().absolute())).render_as_string(hide_password=False)
    return address


def _count(name: str, default: int) -> int:
    value = _get(name, str(default))
    if not value.isascii() or not value.isdecimal() or not 0 < int(value) < 1 << 62:
        raise BadInput(f"UNDERTONE_{name}: expected a whole number above 0, found {value[:40]!r}")
    return int(value)


def home() -> Path:
    """Return the folder of this installation (UNDERTONE_HOME), absolute because Airflow refuses relative paths."""
    return _resolve(_get("HOME", "~/.undertone"))


inbox = partial(_folder, "INBOX")  # <inbox>/<source>/<day>/*, which the daily run reads
models = partial(_folder, "MODELS")  # trained models, a folder for each content hash
reports = partial(_folder, "REPORTS")  # HTML pages
labelling = partial(_folder, "LABELLING")  # files for raters and from them, a folder for each project
releases = partial(_folder, "RELEASES")  # published data sets, a folder for each release
resources = partial(_folder, "RESOURCES")  # downloaded linguistic resources

catalog_uri = partial(_database, "CATALOG", "catalog.db")  # the Iceberg catalog: a SQLite file, PostgreSQL for a team
spool_uri = partial(_database, "SPOOL", "spool.db")  # of the fetcher, where a page and its cursor are one transaction
llm_ledger = partial(_database, "LLM_LEDGER", "ledger.db")  # answers of language models, each paid for once


def schedule(dag_id: str) -> str:
    """Return the schedule of a DAG; UNDERTONE_SCHEDULES, such as `studies=off; csd=30 5 * * 2`, changes some."""
    changes = {}
    for part in filter(str.strip, _get("SCHEDULES").split(";")):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in SCHEDULES or not value:
            expected = f"expected DAG=SCHEDULE with a DAG of {', '.join(SCHEDULES)}"
            raise BadInput(f"UNDERTONE_SCHEDULES: {expected}, found {part[:60]!r}")
        changes[name] = value
    return changes.get(dag_id, SCHEDULES[dag_id])


def has_catalog() -> bool:
    """Return whether there may be tables: the catalog is a file that exists, or a database."""
    uri = catalog_uri()
    return not uri.startswith("sqlite:///") or Path(uri.removeprefix("sqlite:///")).exists()


llm_key = partial(_secret, "LLM_KEY")  # of the language-model service; a server of one's own often needs none
studio_key = partial(_secret, "STUDIO_KEY")  # token of Label Studio's API
alert_url = partial(_secret, "ALERT_URL")  # webhook for missed deadlines and failed tasks; without one they are logged

encoder = partial(_get, "ENCODER", "embedded")  # sentence encoder: `embedded`, a folder, or a hub name with @revision
precision = partial(_get, "PRECISION", "auto")  # of encoders: float32, bfloat16, or auto; see `choose_precision`
gpu = partial(_get, "GPU", "optional")  # whether tasks of the queue gpu may run on a CPU: optional or required
contact = partial(_get, "CONTACT", CONTACT)  # page or mail address in the crawler's User-Agent
judge = partial(_optional, "JUDGE")  # the language model that the weekly DAG `judge` asks
llm_uri = partial(_optional, "LLM_URL")  # a service of OpenAI's shape, such as http://127.0.0.1:8000/v1
studio_uri = partial(_optional, "STUDIO_URL")  # a Label Studio, such as http://127.0.0.1:8080
# what stands before each text: a text, or the name of a prompt of the encoder; None for its default
encoder_prompt = partial(_optional, "ENCODER_PROMPT")

import_memory = partial(_count, "IMPORT_MEMORY", 900)  # megabytes that an import may take for more than milliseconds
import_seconds = partial(_count, "IMPORT_SECONDS", 10)  # CPU seconds for a file, and one more for each 100 kB

least_new_rows = partial(_count, "LEAST_NEW_ROWS", 100)  # since the last training or study, before a scheduled one
least_days = partial(_count, "LEAST_DAYS", 7)  # from one scheduled training or study to the next
remind_days = partial(_count, "REMIND_DAYS", 3)  # from one alert that people are waited for to the next

llm_prices = partial(_optional_path, "LLM_PRICES")  # a price table that goes before the shipped one
llm_prompts = partial(_optional_path, "LLM_PROMPTS")  # a folder of prompt files that go before the shipped ones

environment = os.environ.copy  # for child processes
aws_endpoint = partial(os.environ.get, "AWS_ENDPOINT_URL")  # of an S3-compatible store; polars and pyarrow both read it


class Attempt(NamedTuple):
    """An attempt at a task: `dag.task.map_index`, and its start as an ISO time of UTC."""

    task: str
    began: str


def begin(task: str, began: datetime) -> None:
    """Record which attempt at a task this process is; dags/dag_defaults.py calls this before every task."""
    os.environ["UNDERTONE_ATTEMPT"] = f"{task} {began.astimezone(UTC).isoformat()}"


def attempt() -> Attempt | None:
    """Return the attempt at a task that this process is (UNDERTONE_ATTEMPT, set by `begin`); None outside Airflow."""
    task, _, began = _get("ATTEMPT").partition(" ")
    return Attempt(task, began) if began else None


def keep_embeddings() -> bool:
    """Return whether scoring keeps the embeddings of texts in the table `embeddings` (UNDERTONE_KEEP_EMBEDDINGS)."""
    if (value := _get("KEEP_EMBEDDINGS", "0")) not in ("0", "1"):
        raise BadInput(f"UNDERTONE_KEEP_EMBEDDINGS: expected 1 (keep) or 0, found {value[:40]!r}")
    return value == "1"


def debug() -> bool:
    """Return whether a bug prints its traceback (UNDERTONE_DEBUG, any value)."""
    return bool(_get("DEBUG"))


def warehouse() -> str:
    """Return the root of the tables: a folder, or s3://bucket/prefix with the usual AWS_* variables."""
    root = _get("WAREHOUSE", str(home() / "warehouse")).rstrip("/")
    return root if "://" in root else str(_resolve(root))


def airflow_task() -> dict[str, str]:
    """Return the DAG, task and run that this process works for, which Airflow sets; nothing outside Airflow."""
    names = {"dag": "AIRFLOW_CTX_DAG_ID", "task": "AIRFLOW_CTX_TASK_ID", "run": "AIRFLOW_CTX_DAG_RUN_ID"}
    return {name: os.environ[variable] for name, variable in names.items() if variable in os.environ}


def deadline_hours() -> float | None:
    """Return the hours from queueing in which a run of the daily chain should end (UNDERTONE_DEADLINE_HOURS).

    None, the default, is no deadline: `airflow dags test` ends with an error for a DAG that has one
    (apache/airflow#73428, in 3.3.2), so the installation of a scheduler sets the hours.
    """
    if not (value := _get("DEADLINE_HOURS")):
        return None
    try:
        hours = float(value)
    except ValueError:
        hours = 0.0
    if not 0 < hours < 24 * 365:
        raise BadInput(f"UNDERTONE_DEADLINE_HOURS: expected hours above 0, found {value!r}")
    return hours


def import_limits() -> tuple[int, int]:
    """Return the bytes of a file read as one, unpacked, and the characters of a line or cell, allowed in memory."""
    from pipeline.io.lines import LIMITS

    return _count("IMPORT_BYTES", LIMITS.whole), _count("IMPORT_CHARACTERS", LIMITS.line)


def scratch(name: str) -> Path:
    """Return a folder of files that can be made again, such as `embeddings`; some are swept by age."""
    return home() / "scratch" / name


def locate_shipped(path: str) -> Path:
    """Locate what ships beside the package in a checkout, and inside it in an installed wheel."""
    package = Path(__file__).resolve().parent
    for place in (package.parent / path, package / path):
        if place.exists():
            return place
    raise Missing(f"{path} was not installed with the package; reinstall undertone")


def references() -> Path:
    """Return the folder of reference corpora, `<name>/<model>.json`."""
    return home() / "references"


def llm_max_tokens() -> int | None:
    """Return the most tokens of an answer (UNDERTONE_LLM_MAX_TOKENS); None: see `pipeline.llm.service.limits`."""
    return _count("LLM_MAX_TOKENS", 0) if _get("LLM_MAX_TOKENS") else None


def user_key() -> bytes | None:
    """Return the key of the HMAC over user ids (UNDERTONE_USER_KEY or its file); without one, user ids are dropped."""
    return key.encode() if (key := _secret("USER_KEY")) else None


def masked_lm(lang: str, override: str | None = None) -> str:
    """Return the masked language model for a language: `count`, a folder, or a hub name with @revision.

    Both `override`, which counts first, and UNDERTONE_MASKED_LM name one model for all languages, or several:
    `en=bert-base-cased@<commit>,zh=bert-base-chinese@<commit>`. A language that neither names has `count`.
    """
    for value in (override, _get("MASKED_LM")):
        models_by_lang: dict[str, str] = dict(re.findall(r"(?:^|,)\s*([a-z]{2,3})=([^,]+)", value or ""))
        if value and (not models_by_lang or lang in models_by_lang):
            return models_by_lang.get(lang, value).strip()
    return "count"


def threads() -> int:
    """Return the batches that a process encodes at once (OMP_NUM_THREADS); by default one for each core."""
    threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]  # OpenMP takes a list, of nested loops
    return int(threads) if threads.isdecimal() and int(threads) else os.cpu_count() or 1


def absolute() -> dict[str, str]:
    """Return the settings that are paths as environment variables that mean the same in every working folder.

    An address of a database, which may hold a password, is included only if it was set.
    """
    folders = (inbox, models, reports, labelling, releases, resources)
    if_set = (catalog_uri, llm_ledger, spool_uri, llm_prices, llm_prompts)
    readers = [*folders, *(read for read in if_set if _get(read.args[0]))]
    paths = {"HOME": home(), "WAREHOUSE": warehouse(), **{read.args[0]: read() for read in readers}}
    files = {
        name: str(Path(value).expanduser().absolute())
        for name, value in os.environ.items()
        if name.startswith("UNDERTONE_") and name.endswith("_FILE") and value
    }
    return {**files, **{f"UNDERTONE_{name}": str(path) for name, path in paths.items()}}


def aws_region() -> str | None:
    """Return the region of the object store (AWS_REGION, AWS_DEFAULT_REGION); any word for a store of one's own."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
