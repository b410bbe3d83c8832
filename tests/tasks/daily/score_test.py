"""Score as a task: each distinct text scored once, in shards of any size, published whole and signed; and placed."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import left_out, sample, warehouse
from pipeline.errors import Retry
from pipeline.models import encoder
from pipeline.score import implicitness
from pipeline.tables import empty
from pipeline.tasks.daily import score
from pipeline.tasks.impscore import scoring
from pipeline.tasks.record.encoders import load_encoder
from pipeline.training import registry
from pipeline.warehouse import buckets
from tests.tasks.conftest import Bring, Enlist

DAY, NEXT = sample.DAY, "2026-11-20"
KEY = ["source", "day", "thread_id", "comment_id", "model_id"]


def scores() -> pl.DataFrame:
    return warehouse.scan("scores").sort(KEY).collect()


@pytest.fixture
def scored_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is scored while the test runs."""
    all_texts: list[str] = []
    function = implicitness.implicitness

    def record_texts(texts: list[str], *arguments: object) -> object:
        all_texts.extend(texts)
        return function(texts, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(implicitness, "implicitness", record_texts)
    return all_texts


def test_run_twice(scored: object) -> None:
    """Each comment has a score in [0, 2], signed, Chinese as an extension (X-07); a second run changes nothing."""
    before = scores()
    assert before.height == warehouse.scan("comments").collect().height
    assert before["value"].is_between(0, 2).all()
    assert score.run(DAY) == before.height
    assert_frame_equal(scores(), before)
    assert warehouse.get_snapshot_id("embeddings") is None  # off by default
    shipped = registry.read(scoring.SHIPPED).model_id
    assert scoring.choose_model(None, DAY).model_id == shipped  # the only other one saw the sample alone
    comments = warehouse.scan("comments").select("source", "comment_id", "lang").collect()
    for lang, signature in before.join(comments, on=["source", "comment_id"]).select("lang", "signature").rows():
        encoder = "embedded" if lang == "en" else "characters"
        assert signature.startswith(f"implicitness|model:{shipped[:12]}|encoder:{encoder}@")
        assert f"|lang:{'en' if lang == 'en' else 'zh(extension)'}|" in signature


@pytest.mark.parametrize("is_fast", [False, True])
def test_size_of_shards_does_not_matter(imported: object, monkeypatch: pytest.MonkeyPatch, is_fast: bool) -> None:
    """Shards of other sizes give the same rows, and the same scores within 1e-6 and the last rounding.

    With `auto` a run is in bfloat16 where the hardware is fast at it, also in a task on other hardware; the signature
    names the precision. Chinese, by counts of characters, stays float32, as do models that are trained.
    """
    if is_fast and not encoder.is_bfloat16_fast():
        pytest.skip("needs a CPU with AMX")
    monkeypatch.setenv("UNDERTONE_PRECISION", "auto")
    monkeypatch.setattr(encoder, "is_bfloat16_fast", lambda: is_fast)
    score.run(DAY)
    before = scores()
    assert load_encoder().precision == "float32"
    signed = (signature.split("|") for signature in before["signature"].unique())
    precision = "bfloat16" if is_fast else "float32"
    expected = {("encoder:embedded", precision), ("encoder:characters", "float32")}
    assert {(parts[2].partition("@")[0], parts[3]) for parts in signed} == expected
    warehouse.overwrite("scores", warehouse.make_slice(day=DAY), empty("scores"))  # or nothing would be left to do
    pinned = score.pin(DAY)
    monkeypatch.setattr(encoder, "is_bfloat16_fast", lambda: not is_fast)
    monkeypatch.setattr(buckets, "ROWS", 50)
    shards = score.plan_shards(DAY, pinned, rows_per_shard=60)
    distinct = warehouse.scan("comments").select("text_hash").unique().collect().height
    assert len(shards) == -(-distinct // 60)
    staged = [score.score_shard(shard, pinned) for shard in shards]
    assert sum(s["rows"] for s in staged) == distinct
    score.publish(staged, DAY, pinned)
    assert_frame_equal(scores().drop("value"), before.drop("value"))
    assert scores()["value"].to_list() == pytest.approx(before["value"].to_list(), abs=2e-6)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_text_is_scored_once(
    imported: object, bring: Bring, scored_texts: list[str], monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """A text of two comments is scored once, in either precision and language; of another day only new texts are."""
    monkeypatch.setenv("UNDERTONE_PRECISION", precision)
    bring(NEXT, {"1": "Nice hat, sir.", "2": "Nice hat, sir.", "3": "今天真冷。"})
    counts: list[int] = []
    assert score.run(NEXT, counts.append) == score.run(NEXT, counts.append) == 3
    assert sorted(scored_texts) == ["Nice hat, sir.", "今天真冷。"]
    assert sum(counts) == 2
    assert score.plan_shards(NEXT, score.pin(NEXT)) == []
    values = scores().filter(source="notes").sort("comment_id")["value"].to_list()
    assert values[0] == values[1] != values[2]
    bring("2026-11-21", {"4": "Nice hat, sir.", "5": "These words are new."})
    assert score.run("2026-11-21") == 2
    assert scored_texts[2:] == ["These words are new."]
    assert scores().filter(comment_id="4")["value"].to_list() == values[:1]


def test_missing_shard_writes_nothing(imported: object) -> None:
    """Publishing without one of the shards is Retry; neither scores nor the run is written."""
    pinned = score.pin(DAY)
    shards = score.plan_shards(DAY, pinned, rows_per_shard=150)
    before = [warehouse.get_snapshot_id(name) for name in ("scores", "runs")]
    staged = [score.score_shard(shards[0], pinned)]
    for subset in (staged, []):
        with pytest.raises(Retry, match=r"scores of \d+ comments are missing: run the shards again"):
            score.publish(subset, DAY, pinned)
    assert [warehouse.get_snapshot_id(name) for name in ("scores", "runs")] == before


def test_words_of_both_ends(imported: object, bring: Bring) -> None:
    """The words of the highest and the lowest score are written; they stay until another run or their comment goes."""
    texts = {"1": "Nice hat, sir.", "2": "It is raining.", "3": "今天真冷。", "4": "Sure, take your time, why not."}
    bring(NEXT, texts)

    def load_words() -> dict[str, list[str]]:
        rows = warehouse.scan("scores_explained").sort("position").collect()
        assert not rows["change"].has_nulls()
        return {str(key): part["word"].to_list() for (key,), part in rows.group_by("comment_id")}

    score.run(NEXT, explained=1)
    ends = scores().sort("value")["comment_id"].gather([0, -1]).to_list()
    words = load_words()
    assert sorted(words) == sorted(ends)
    assert all("".join(parts) == texts[name].replace(" ", "") for name, parts in words.items())
    score.run(NEXT)
    assert load_words() == words
    bring(NEXT, texts | {ends[0]: "Other words."})
    assert not warehouse.run_check("explanations_have_comments", NEXT)
    assert load_words() == {ends[1]: words[ends[1]]}
    score.run(NEXT, explained=5)
    assert sorted(load_words()) == sorted(texts)


def test_run_keeps_the_model_it_began_with(imported: object, enlist: Enlist) -> None:
    """The model is pinned when the run begins; one trained meanwhile is for the next run. A given one is taken."""
    pinned = score.pin(DAY)
    other = enlist(DAY, 1)
    assert pinned["model_id"] != other == score.pin(DAY)["model_id"]
    assert score.pin(DAY, "f" * 64)["model_id"] == "f" * 64


def test_frame_gets_scores(scored: object) -> None:
    """A frame gets implicitness and signature in its order, also if it has them; rows without text have neither."""
    rows = warehouse.scan("comments").select("source", "comment_id", said="text").sort("comment_id").head(6).collect()
    output = scoring.add_scores(rows, "said", None)
    assert output.columns == ["source", "comment_id", "said", "implicitness", "signature"]
    expected = rows.join(scores(), on=["source", "comment_id"], how="left", maintain_order="left")
    assert output["implicitness"].to_list() == pytest.approx(expected["value"].to_list(), abs=2e-6)
    assert output["signature"].to_list() == expected["signature"].to_list()
    rows = pl.DataFrame({"said": ["Nice hat.", None, "  ", "今天真冷。"], "implicitness": [9.0, 9.0, 9.0, 9.0]})
    output = scoring.add_scores(rows, "said", None)
    assert output.columns == ["said", "implicitness", "signature"]
    assert output["implicitness"].is_between(0, 2).to_list() == [True, None, None, True]
    assert output["signature"].is_null().to_list() == [False, True, True, False]
    assert scoring.add_scores(rows.head(0), "said", None).height == 0


def test_names_of_a_frames_columns_do_not_matter(tables: object, enlist: Enlist) -> None:
    """Columns of a user's file may have any name, also one that is used within."""
    others = pl.DataFrame({name: ["x", "y"] for name in ("_row", "_at", "text_hash", "lang", "value")})
    scores = scoring.add_scores(others.with_columns(text=pl.Series(["nice hat", ""])), "text", enlist(DAY, 1))
    assert scores.columns == [*others.columns, "text", "implicitness", "signature"]
    assert scores.select(others.columns).equals(others)


def test_each_language_has_its_head(imported: object, enlist: Enlist) -> None:
    """The shipped model scores Chinese by its Chinese head, anything else by its English one; `any` scores all."""
    texts = pl.DataFrame({"text": ["Nice hat, sir.", "今天真冷，某人又迟到了。", "ん、そうですね。"]})
    heads = scoring.load_heads(None).heads
    pairs = zip(texts["text"], ("en", "zh", "en"), strict=True)
    expected = [float(implicitness.implicitness([text], heads[name])[0]) for text, name in pairs]
    scores = scoring.add_scores(texts, "text", None)
    assert scores["implicitness"].to_list() == pytest.approx(expected, abs=2e-6)
    langs = [signature.split("|lang:")[1].split("|")[0] for signature in scores["signature"]]
    assert langs == ["en", "zh(extension)", "ja(extension)"]
    assert list(scoring.load_heads(enlist(DAY, 1)).heads) == ["any"]


DAY, NEXT = sample.DAY, "2026-11-20"


def read_places() -> pl.DataFrame:
    return warehouse.scan("projections").sort("day", "source", "text_hash").collect()


def test_places_run_twice(imported: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text of each source has a place by the encoder of its language; a second run changes nothing."""
    comments = warehouse.scan("comments").select("source", "text_hash", "lang").unique().collect()
    assert score.place_texts(DAY) == comments.height
    before = read_places()
    assert score.place_texts(DAY) == comments.height
    assert_frame_equal(read_places(), before)
    placed = before.join(comments, on=["source", "text_hash"], validate="1:1")
    pairs = placed.select("lang", pl.col("signature").str.extract("encoder:([a-z]+)@")).unique().rows()
    assert {*pairs} >= {("en", "embedded"), ("zh", "characters")}
    counts = warehouse.scan("runs", pl.col("step") == "project").sort("source").collect()["kept_count"]
    assert counts.to_list() == before.group_by("source").len().sort("source")["len"].to_list()
    monkeypatch.setattr(encoder, "limit_rows", lambda _: 10)  # of more texts the lowest hashes are placed
    left_out.clear()
    score.place_texts(DAY)
    assert read_places()["text_hash"].n_unique() == 20
    english = comments.filter(lang="en")["text_hash"].n_unique()
    assert f"embedded: 10 of {english:,} texts of {DAY} are placed, a sample" in left_out.list_lines()


def test_a_day_has_its_own_texts(imported: object, bring: Bring) -> None:
    """Another day stays; a text that the day has no more loses its place; a day without comments has none."""
    score.place_texts(DAY)
    before = read_places()
    bring(NEXT, {"1": "Nice hat, sir.", "2": "It is raining.", "3": "今天真冷。"})
    assert score.place_texts(NEXT) == 3
    bring(NEXT, {"1": "Nice hat, sir."})
    assert (score.place_texts(NEXT), score.place_texts("2026-11-21")) == (1, 0)
    assert_frame_equal(read_places().filter(pl.col("day") == before["day"][0]), before)
