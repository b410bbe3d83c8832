"""A warehouse in which every table and every store holds something of one person, and something of others."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import settings, warehouse
from pipeline.collect import fetch
from pipeline.collect.privacy import anonymise
from pipeline.llm.ledger import answers
from pipeline.llm.ledger.cost import Call
from pipeline.llm.request import Request, dump_json
from pipeline.llm.service.replies import Reply
from pipeline.tables import TABLES
from pipeline.tasks.erasure.request import Request as ErasureRequest
from pipeline.tasks.labelling import release
from tests.support.rows.filled import DAY, digest, filled

MARK = "zqxmark"  # in every text that is theirs or was made of it
KEY, RAW = b"a key for tests", "4711998877"
USER = str(anonymise.hash_user("weibo", RAW, KEY))
ERASED = f'{MARK} "said" by one person <alone>, and by nobody else'
SHORT, SHARED = "zq!", "we all say so"
MEANING = f"what it means, {MARK}"
MODEL, OTHER = digest("keeps", 64), digest("other", 64)


def hash_of(text: str) -> str:
    """The text_hash of a text."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Rows(NamedTuple):
    """Rows of a table that go, those that stay, and how the latter look after it where that is different."""

    erased: list[dict[str, Any]]
    remaining: list[dict[str, Any]]
    after: list[dict[str, Any]] | None = None


def _comment(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"comment_id": name, "text": text, "text_hash": hash_of(text), **more}


def _score(name: str, text: str) -> dict[str, Any]:
    return {"comment_id": name, "text_hash": hash_of(text), "model_id": OTHER}


def _reply(**more: Any) -> dict[str, Any]:
    return _comment("9002", "a reply that stays", user_id="b" * 32, **more)


PERSON = ErasureRequest(user_ids=[USER])
TASK, SHOWN, FREE = (digest(name, 32) for name in ("task", "shown", "free"))
WORDS = [MARK, USER, TASK, hash_of(ERASED), RAW]
ROW, SHOWN_ROW, FREE_ROW = (digest(name, 16) for name in ("task", "shown", "free"))
GENERATED, OTHER_GENERATED = digest("made", 32), digest("own", 32)
PAIR, NEAR = digest("pair", 32), digest("near", 32)
REQUEST = Request("m", [{"role": "user", "content": ERASED}], "explicit_en", "1", {})
OTHER_REQUEST = Request("m", [{"role": "user", "content": "what others say"}], "explicit_en", "1", {})
SHORT_REQUEST = Request("m", [{"role": "user", "content": SHORT}], "explicit_en", "1", {})


def _completion(request: Request, response: str) -> dict[str, Any]:
    return {"completion_id": request.key, "messages": dump_json(request.messages), "response": response}


def build_request(content: str, response: str) -> dict[str, Any]:
    """A row of `completions`: what was asked, and the answer."""
    return _completion(Request("m", [{"role": "user", "content": content}], "explicit_en", "1", {}), response)


def _of_page(*names: str) -> str:
    text = {"9001": ERASED, "9002": "a reply that stays"}
    items = [
        {"id": name, "text": text[name], "user": {"id": USER if name == "9001" else "b" * 32}, "like_count": 1,
         **({"reply_id": "9001", "reply_original_text": ERASED if "9001" in names else ""} if name == "9002" else {})}
        for name in names
    ]  # fmt: skip
    return json.dumps({"data": {"data": items, "max_id": 0}, "ok": 1}, ensure_ascii=False, sort_keys=True)


PAGE = "https://m.weibo.cn/comments/hotflow?id=t1&mid=t1"
FULL, CUT = _of_page("9001", "9002"), _of_page("9002")


def _page_id(body: str) -> str:
    return hashlib.sha256(f"{PAGE}\n{body}".encode()).hexdigest()


WORLD: dict[str, Rows] = {
    "comments": Rows(
        [_comment(name, text, user_id=USER) for name, text in (("9001", ERASED), ("9005", SHARED), ("9006", SHORT))],
        [_reply(parent_id="9001", root_id="9001", context=ERASED, context_id="9001"),
         _comment("9003", "deeper", parent_id="9002", root_id="9001", context="a reply that stays", context_id="9002"),
         _comment("9004", SHARED)],
        [_reply(context_id="t1"),
         _comment("9003", "deeper", parent_id="9002", context="a reply that stays", context_id="9002"),
         _comment("9004", SHARED)],
    ),
    "tokens": Rows(
        [{"text_hash": hash_of(text), "tokens": text.split()} for text in (ERASED, SHORT)],
        [{"text_hash": hash_of(text), "tokens": text.split()} for text in ("a reply that stays", "deeper", SHARED)],
    ),
    "embeddings": Rows(
        [{"text_hash": hash_of(text)} for text in (ERASED, SHORT, "theirs before an edit")],
        [{"text_hash": hash_of(text)} for text in ("a reply that stays", "deeper", SHARED)],
    ),
    "projections": Rows(
        [{"text_hash": hash_of(text)} for text in (ERASED, SHORT)],
        [{"text_hash": hash_of(text)} for text in ("a reply that stays", SHARED)],
    ),
    "scores": Rows(
        [_score(*item) for item in (("9001", ERASED), ("9005", SHARED), ("9006", SHORT))],
        [_score(*item) for item in (("9002", "a reply that stays"), ("9003", "deeper"), ("9004", SHARED))],
    ),
    "scores_explained": Rows(
        [_score(*item) | {"word": word, "position": place} for item in (("9001", ERASED), ("9005", SHARED))
         for place, word in enumerate((MARK, "said"), 1)],
        [_score(*item) for item in (("9002", "a reply that stays"), ("9004", SHARED))],
    ),
    "raw_pages": Rows([], *([{"url": PAGE, "body": body, "page_id": _page_id(body)}] for body in (FULL, CUT))),
    "articles": Rows([], [{"thread_id": "t1", "text": "An article by others", "summary": "A hope"}]),
    "dropped": Rows(
        [],
        [{"step": "deduplicate", "reason": "duplicate", "row_key": "9001"}, {"row_key": "8000"},
         {"source": "csd", "origin": "label:csd", "step": "labels", "row_key": f"{TASK}/r1/subtext/1/1"}],
        [{"step": "deduplicate", "reason": "duplicate", "row_key": "erased"}, {"row_key": "8000"},
         {"source": "csd", "origin": "label:csd", "step": "labels", "row_key": "erased"},
         *({"step": "erased", "reason": "erased", "row_key": "erased"} for _ in range(3))],
    ),
    "runs": Rows(
        [],
        [{"read_count": 8, "kept_count": 6, "dropped_count": 2},
         {"step": "ask", "read_count": 1, "kept_count": 1, "config": json.dumps({"said": ERASED})}],
        [{"read_count": 8, "kept_count": 3, "dropped_count": 5},
         {"step": "ask", "read_count": 1, "kept_count": 1, "config": "{}"}],
    ),
    "sentences": Rows(
        [{"item_id": "s1", "text": ERASED}, {"item_id": "s2", "text": f"quoted: {ERASED}"}],
        [{"item_id": "s3", "text": "another sentence"}],
    ),
    "completions": Rows(
        [_completion(REQUEST, MEANING), _completion(SHORT_REQUEST, f"short, {MARK}")],
        [_completion(OTHER_REQUEST, "what others mean")],
    ),
    "pairs": Rows(
        [{"pair_id": PAIR, "implicit": ERASED, "explicit": MEANING, "negative": "bad", "completion_id": REQUEST.key},
         {"pair_id": digest("n", 32), "implicit": "mine", "explicit": "yours", "negative": MEANING}],
        [{"pair_id": NEAR, "implicit": "nice", "explicit": "good", "cluster_id": PAIR}],
        [{"pair_id": NEAR, "implicit": "nice", "explicit": "good"}],
    ),
    "label_tasks": Rows(
        [{"task_id": TASK, "row_id": ROW, "comment_id": "9001", "text": ERASED}],
        [{"task_id": SHOWN, "row_id": SHOWN_ROW, "comment_id": "9002", "text": "a reply that stays", "context": ERASED},
         {"task_id": FREE, "row_id": FREE_ROW, "comment_id": "9004", "text": SHARED, "context": "fine"}],
        [{"task_id": SHOWN, "row_id": SHOWN_ROW, "comment_id": "9002", "text": "a reply that stays"},
         {"task_id": FREE, "row_id": FREE_ROW, "comment_id": "9004", "text": SHARED, "context": "fine"}],
    ),
    "labels": Rows(
        [{"task_id": TASK, "value": "1"}, {"task_id": TASK, "field": "meaning", "value": MEANING},
         {"task_id": FREE, "field": "comment", "value": f"he quotes {ERASED}"}],
        [{"task_id": FREE, "value": "1"}],
    ),
    "annotations": Rows(
        [{"task_id": TASK, "state": "adopted", "value": "1"}], [{"task_id": FREE, "state": "adopted", "value": "1"}]
    ),
    "annotated_comments": Rows(
        [{"row_id": ROW, "text": ERASED, "meaning": MEANING}],
        [{"row_id": SHOWN_ROW, "text": "a reply that stays", "context": ERASED}, {"row_id": FREE_ROW, "text": SHARED}],
        [{"row_id": SHOWN_ROW, "text": "a reply that stays"}, {"row_id": FREE_ROW, "text": SHARED}],
    ),
    "threads": Rows([], [{"thread_id": "t1", "split": "test"}]),
    "reference_comments": Rows([{"comment_id": "9001"}], [{"comment_id": "9002"}]),
    "comment_grades": Rows(
        [{"comment_id": "9001"}, {"comment_id": GENERATED}], [{"comment_id": "9002"}, {"comment_id": OTHER_GENERATED}]
    ),
    "generated_comments": Rows(
        [{"generated_id": GENERATED, "text": ERASED, "tokens": ERASED.split(), "found_in": "weibo/t1/9001"}],
        [{"generated_id": OTHER_GENERATED, "text": "fine", "tokens": ["fine"], "found_in": "weibo/t1/9004"}],
    ),
    "metric_scores": Rows([{"generated_id": GENERATED}], [{"generated_id": OTHER_GENERATED}]),
    "compressions": Rows(
        [{"item_id": "s1", "system": "gold", "words": ERASED.split(), "rounds": [0] * 10, "ratio": 1.0}],
        [{"item_id": "s9", "system": "gold"}],
    ),
    "cloze_targets": Rows([], [{"thread_id": "t1"}]), "cloze_items": Rows([], [{"thread_id": "t1"}]),
    "training_texts": Rows(
        [],
        [{"kind": "seq2seq", "model_id": MODEL, "text_hash": hash_of(ERASED), "row_count": 2},
         {"kind": "seq2seq", "model_id": MODEL, "text_hash": hash_of(SHARED), "row_count": 2},
         {"kind": "impscore", "model_id": OTHER, "text_hash": hash_of(SHARED), "row_count": 1}],
        [{"kind": "seq2seq", "model_id": MODEL, "text_hash": "erased", "row_count": 2},
         {"kind": "seq2seq", "model_id": MODEL, "text_hash": hash_of(SHARED), "row_count": 2},
         {"kind": "impscore", "model_id": OTHER, "text_hash": hash_of(SHARED), "row_count": 1}],
    ),
    "models": Rows(
        [], [{"kind": "seq2seq", "model_id": MODEL}, {"model_id": OTHER}],
        [{"kind": "seq2seq", "model_id": MODEL, "is_promoted": False}, {"model_id": OTHER}],
    ),
    "evaluations": Rows([], [{"model_id": MODEL}]), "studies": Rows([], [{}]), "erasures": Rows([], []),
    "model_erasures": Rows([], []),
}  # fmt: skip
"""Every table, with what is theirs and what is others'."""


def put_rows(name: str, rows: list[dict[str, Any]]) -> None:
    """Make the rows of a table exactly these, partition by partition."""
    frame = filled(name, *rows)
    partitions = list(TABLES[name].partitions)
    for values, part in frame.partition_by(partitions, as_dict=True).items():
        warehouse.overwrite(name, warehouse.make_slice(**dict(zip(partitions, values, strict=True))), part)


def put_world(*names: str) -> None:
    """Fill these tables."""
    for name in names:
        put_rows(name, [*WORLD[name].erased, *WORLD[name].remaining])


def put_comments(*texts: str) -> None:
    """Make these texts the comments of the person."""
    put_rows("comments", [{"comment_id": text, "text": text, "user_id": USER} for text in texts or [ERASED]])


def fill() -> None:
    """Fill every table and store; the comments and their pages have a former state and a tag besides."""
    put_world(*WORLD)
    first = warehouse.get_snapshot_id("comments")
    assert first is not None
    warehouse.load_table("comments").manage_snapshots().create_tag(first, "paper").commit()
    for name in ("comments", "sentences"):
        put_rows(name, [*WORLD[name].remaining, *WORLD[name].erased])
    write_files()


def write_files() -> None:
    """What lies beside the tables."""
    import html

    import xlsxwriter  # type: ignore[import-untyped]

    (settings.releases() / "csd").mkdir(parents=True)
    release.write_files("csd")
    page = "<html><body><p>{}</p></body></html>"
    _write(settings.reports() / "2026-11-19.html", page.format(html.escape(ERASED)))
    _write(settings.reports() / "2026-11-18.html", page.format("fine"))
    folder = settings.labelling() / "csd" / "round1_stage1"
    messages = [{"task_id": task, "text": text} for task, text in ((TASK, ERASED), (FREE, SHARED))]
    _write(folder / "tasks.jsonl", "".join(f"{json.dumps(row)}\n" for row in messages))
    _write(folder / "labels" / "r1.csv", f"task_id,subtext,meaning\n{TASK},1,x\n{FREE},1,\n")
    _write(folder / "labels" / "r1.json", json.dumps([{"data": {"task_id": TASK}}, {"data": {"task_id": FREE}}]))
    with xlsxwriter.Workbook(str(folder / "r1.xlsx")) as book:
        sheet = book.add_worksheet("tasks")
        for number, row in enumerate((["task_id", "text"], (TASK, ERASED), (FREE, SHARED))):
            sheet.write_row(number, 0, row)
    engine = answers.open_ledger(settings.llm_ledger())
    for request, response in (
        (REQUEST, MEANING),
        (SHORT_REQUEST, f"short, {MARK}"),
        (OTHER_REQUEST, "what others mean"),
    ):
        call = Call(request.key, request, Reply("answered", response=response, ended_at=1.0), 0.5)
        answers.record(engine, [call], "me", "test")
    answers.close()
    spool = fetch.Spool(settings.spool_uri())
    spool.save(fetch.ChainKey("weibo", DAY.isoformat(), PAGE), 0, PAGE, json.loads(FULL), (None, 1))
    spool.close()
    inbox = settings.inbox() / "weibo" / DAY.isoformat()
    quoted = ERASED.replace('"', '""')
    _write(inbox / "a.csv", f'user,text\n{RAW},zq!\n1,{SHARED}\n2,"{quoted}"\n')
    _write(inbox / "old.csv", f'text\n"{quoted}"\n大家都这么说\n', "gb18030")
    raw = json.loads(FULL)
    raw["data"]["data"][0]["user"]["id"] = int(RAW)
    _write(inbox / "pages.jsonl", json.dumps({"source": "weibo", "url": PAGE, "body": raw}, ensure_ascii=False) + "\n")
    for model_id, other_text in ((MODEL, ERASED), (OTHER, "fine")):
        folder = settings.models() / model_id
        _write(folder / "config.json", "{}")
        (folder / "model.safetensors").write_bytes(b"\0\1\2" + other_text.encode() + b"\3")
    warehouse.stage("comments", filled("comments", *WORLD["comments"].erased))
    _write(settings.scratch("training") / "state.safetensors", MARK)
    _write(settings.scratch("embeddings") / "vectors.npy", "1 2 3")
    _write(settings.home() / "airflow" / "logs" / "task.log", f"began\nrows: {ERASED}\nended\n")


def _write(path: Path, text: str, encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding)


def expect_rows(name: str) -> pl.DataFrame:
    """Rows of a table in order as they should be afterwards."""
    rows = WORLD[name]
    frame = filled(name, *(rows.remaining if rows.after is None else rows.after))
    return frame.sort(pl.all().exclude(pl.List))
