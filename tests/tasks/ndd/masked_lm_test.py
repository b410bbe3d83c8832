"""Masked language models as tasks: which one answers, and counts of the corpus at hand."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.tasks.ndd import masked_lm
from pipeline.tasks.ndd.masked_lm import SAMPLE, count, count_file, opened
from tests.support.filled import DAY as DATE
from tests.support.filled import NEXT, filled

DAY, LATER = DATE.isoformat(), NEXT.isoformat()
TEXTS = ["The bus is late.", "The soup is cold. The bus is full.", "Nobody likes the old shop."]
MANY = [f"The bus {number} is late again, and it is cold." for number in range(60)]


def put(day: str, *texts: str, lang: str = "en") -> None:
    """Comments of a day in a language."""
    rows = [{"text": text, "lang": lang, "day": DATE if day == DAY else NEXT} for text in texts]
    warehouse.overwrite("comments", warehouse.slice_of(day=day), filled("comments", *rows))


def words_of(found: masked_lm.Opened) -> set[str]:
    """The words that a model of counts knows."""
    return set(found.model.words)  # type: ignore[attr-defined]


def test_counts_of_the_sample() -> None:
    """They answer where nothing else was counted, even before there are tables; each language has its own."""
    assert opened().model_id == opened("count").model_id == opened(SAMPLE).model_id == SAMPLE
    assert masked_lm.is_counts(opened())
    assert opened("count", "zh").model.signature != opened().model.signature
    assert opened(SAMPLE).model.signature == opened().model.signature


def test_a_cache_is_an_option() -> None:
    """Its share is in the signature, and the model without one stays as it was."""
    plain = opened().model.signature
    assert opened(cache=0.1).model.signature == plain.replace("cache:0", "cache:0.1")
    assert opened().model.signature == plain


def test_a_file_is_counted_into_a_folder(tmp_path: Path) -> None:
    """What was counted is told; the folder opens, by its content, and may be written anew."""
    told = count_file(TEXTS, tmp_path / "counts")
    assert told.rows() == [(4, 21, 13)]
    found = opened(str(tmp_path / "counts"))
    assert masked_lm.is_counts(found)
    assert {"bus", "soup", "Nobody"} <= words_of(found)
    count_file(TEXTS, tmp_path / "counts")
    assert opened(str(tmp_path / "counts")).model_id == found.model_id
    shutil.move(tmp_path / "counts", tmp_path / "elsewhere")
    assert opened(str(tmp_path / "elsewhere")).model_id == found.model_id
    count_file([*TEXTS, "老店没人喜欢"], tmp_path / "both")
    assert {"bus", "喜欢"} <= words_of(opened(str(tmp_path / "both")))


def test_what_cannot_be_counted(tmp_path: Path) -> None:
    """No words; a folder that holds something else is left alone."""
    with pytest.raises(BadInput, match="there is nothing to count: expected at least one sentence with a word"):
        count_file(["", " "], tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(BadInput, match=r"mine: is there and is no model of ours"):
        count_file(TEXTS, tmp_path / "mine")


@pytest.mark.parametrize(
    ("ref", "kind", "said"),
    [
        ("no-such-model", BadInput, "'no-such-model' is no folder, and a hub name needs a pinned revision"),
        ("f" * 64, Missing, "model ffffffffffff is not in .*models; train it again"),
        ("{folder}", BadInput, "no .safetensors weights"),
        ("{folder}|words", BadInput, "expected one of one, pieces; found 'words'"),
    ],
)
def test_references_that_lead_nowhere(tmp_path: Path, ref: str, kind: type[Exception], said: str) -> None:
    """Each is refused with what it could be; a folder with a configuration of another kind is no model of counts."""
    (tmp_path / "config.json").write_text('["kind"]', encoding="utf-8")
    with pytest.raises(kind, match=said):
        opened(ref.format(folder=tmp_path))


def test_the_corpus_is_what_there_is_of_a_language(tables: Path) -> None:
    """Distinct texts of comments and articles up to a day, in order; blank ones are none."""
    del tables
    put(DAY, "b c", "a b", "a b")
    put(LATER, "c d")
    articles = filled(
        "articles",
        {"title": "a b", "text": "e f", "lang": "en"},
        {"thread_id": "t2", "title": "标题", "summary": " ", "lang": "zh"},
    )
    warehouse.overwrite("articles", warehouse.slice_of(day=DAY), articles)
    assert {"a b", "b c", "e f"} <= {*masked_lm.corpus("en", DAY)}
    assert masked_lm.corpus("en", DAY).to_list() == sorted({*masked_lm.corpus("en", DAY)})
    assert "c d" not in {*masked_lm.corpus("en", DAY)}
    assert {*masked_lm.corpus("en")} == {*masked_lm.corpus("en", LATER)} == {*masked_lm.corpus("en", DAY), "c d"}
    assert "标题" in {*masked_lm.corpus("zh", DAY)}
    assert " " not in {*masked_lm.corpus("zh")}


@pytest.mark.usefixtures("tables")
def test_counts_of_the_corpus_are_in_force() -> None:
    """The model is promoted with its numbers, told from texts that were not counted; the same again is the same."""
    put(DAY, *MANY)
    model_id = count("en", DAY)
    assert model_id
    assert opened().model_id == opened(model_id).model_id == opened("count", "en", DAY).model_id == model_id
    assert opened("count", "zh").model_id == SAMPLE
    row = warehouse.scan("models").collect().row(0, named=True)
    assert (row["kind"], row["model_id"], row["encoder"], row["is_promoted"]) == (
        masked_lm.kind_of("en"), model_id, "count", True,
    )  # fmt: skip
    numbers = warehouse.scan("evaluations").sort("metric").collect()
    assert numbers["metric"].to_list() == ["accuracy", "cross_entropy", "word_count"]
    accuracy, entropy, size = numbers.iter_rows(named=True)
    assert 0 <= accuracy["value"] <= 1
    assert 0 < entropy["value"] < np.log(len(words_of(opened())) + 1)  # better than any word alike
    assert (accuracy["split"], size["split"]) == ("test", "train")
    assert 0 < accuracy["pair_count"] < size["value"]
    before = numbers, warehouse.scan("models").collect()
    assert count("en", DAY) == model_id
    after = warehouse.scan("evaluations").sort("metric").collect(), warehouse.scan("models").collect()
    assert all(one.drop("run_id", strict=False).equals(other.drop("run_id", strict=False))
               for one, other in zip(before, after, strict=True))  # fmt: skip


@pytest.mark.usefixtures("tables")
def test_days_up_to_the_one_given_are_counted() -> None:
    """A later day's words are in its own model alone; each day is answered by its own, none by a later one's."""
    put(DAY, *MANY)
    first = count("en", DAY)
    put(LATER, *(f"Snow fell on street {number}." for number in range(60)))
    assert count("en", DAY) == first
    second = count("en", LATER)
    assert second != first
    assert {first, second} == {opened("count", "en", day).model_id for day in (DAY, LATER)}
    assert opened().model_id == second
    assert "Snow" in words_of(opened())
    assert "Snow" not in words_of(opened("count", "en", DAY))


@pytest.mark.usefixtures("tables")
def test_each_language_with_counts_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One without text has none, and one whose model is another is not counted."""
    put(DAY, *MANY[:5])
    english, chinese = masked_lm.count_all(DAY)
    assert english
    assert chinese is None
    monkeypatch.setenv("UNDERTONE_MASKED_LM", "en=some/model@0123456789abcdef0123456789abcdef01234567")
    assert masked_lm.count_all(DAY) == [None]
    assert masked_lm.count_all(DAY, "zh=some/model") == []
    assert masked_lm.count_all(DAY, "count") == [english, None]


def test_a_transformer_by_its_folder(bert: Path) -> None:
    """It has states, its revision names it, and it is loaded once."""
    found = opened(str(bert))
    assert not masked_lm.is_counts(found)
    assert found.model.signature.startswith(f"hf:{bert.name}@{found.model_id[:12]}")
    assert opened(str(bert)).model is found.model
    assert "|masks:one|" in found.model.signature
    assert "|masks:pieces|" in opened(f"{bert}|pieces").model.signature


def test_a_folder_that_was_replaced_is_loaded_again(bert: Path, tmp_path: Path) -> None:
    """Another model in the same place has another revision; nothing that was held of the old one is used."""
    folder = tmp_path / "model"
    shutil.copytree(bert, folder)
    first = opened(str(folder))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-3}))
    second = opened(str(folder))
    assert second.model is not first.model
    assert second.model_id != first.model_id


def test_the_setting_names_models(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for all languages, or one each, with counts for those that are not named; what is given goes before."""
    monkeypatch.setenv("UNDERTONE_MASKED_LM", str(bert))
    assert [settings.masked_lm(lang) for lang in ("en", "zh")] == [str(bert)] * 2
    assert not masked_lm.is_counts(opened(None, "zh"))
    monkeypatch.setenv("UNDERTONE_MASKED_LM", f"zh={bert}, ja=count")
    assert [settings.masked_lm(lang) for lang in ("en", "zh", "ja")] == ["count", str(bert), "count"]
    assert masked_lm.is_counts(opened())
    assert not masked_lm.is_counts(opened(None, "zh"))
    assert masked_lm.is_counts(opened("count", "zh"))
    assert not masked_lm.is_counts(opened(f"en={bert}", "zh"))  # not named there, so as the environment has it
    assert settings.masked_lm("ja", f"en={bert}") == "count"
    assert not masked_lm.is_counts(opened(f"en={bert}", "en"))
    monkeypatch.delenv("UNDERTONE_MASKED_LM")
    assert settings.masked_lm("en") == "count"


def test_a_folder_that_is_there_is_not_trained_into(tmp_path: Path) -> None:
    """Nothing is read or written before."""
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(BadInput, match="is there already; choose another folder"):
        masked_lm.train(TEXTS, tmp_path)


@pytest.mark.usefixtures("tables")
def test_an_encoder_is_adapted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the same texts and recipe the folder that is there is named; other texts or another day are another one."""
    made: list[Path] = []

    def train(texts: list[str], out: Path, *_: object, **__: object) -> None:
        assert texts
        out.mkdir(parents=True)
        made.append(out)

    monkeypatch.setattr(masked_lm, "train", train)
    with pytest.raises(Missing, match=f"no comment or article in en up to {DAY} to adapt an encoder to"):
        masked_lm.adapt(DAY)
    put(DAY, *TEXTS)
    assert masked_lm.adapt(DAY) == masked_lm.adapt(DAY) == f"en={made[0]}"
    assert made[0].parent == settings.models()
    put(LATER, "Snow fell.")
    assert masked_lm.adapt(DAY) == f"en={made[0]}"
    assert masked_lm.adapt(LATER) == f"en={made[1]}"
    assert len({*made}) == len(made) == 2


def test_words_are_those_of_sentences() -> None:
    """A text's sentences one after another, those of each language cut its own way."""
    assert [*masked_lm.cut(["Don't go. Stay!", ""], "en")] == [["Do", "n't", "go", "."], ["Stay", "!"]]
    assert [*masked_lm.cut(["我很冷。"], "zh")] == [["我", "很", "冷", "。"]]
    assert pl.Series([len(words) for words in masked_lm.cut(TEXTS, "en")]).sum() == 21
