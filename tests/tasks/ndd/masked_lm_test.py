"""Masked language models: which one is loaded, and counts of the corpus."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.tasks.ndd import masked_lm
from pipeline.tasks.ndd.masked_lm import SAMPLE, count_corpus, count_file, load_model
from pipeline.tasks.record import model_registry, promotion
from tests.support.rows.filled import DAY as DATE
from tests.support.rows.filled import NEXT, filled

DAY, LATER = DATE.isoformat(), NEXT.isoformat()
TEXTS = ["The bus is late.", "The soup is cold. The bus is full.", "Nobody likes the old shop."]
MANY = [f"The bus {number} is late again, and it is cold." for number in range(60)]


def write_comments(day: str, *texts: str, lang: str = "en") -> None:
    """Write comments of a day in a language."""
    rows = [{"text": text, "lang": lang, "day": DATE if day == DAY else NEXT} for text in texts]
    warehouse.overwrite("comments", warehouse.make_slice(day=day), filled("comments", *rows))


def list_words(lm: masked_lm.LoadedModel) -> set[str]:
    """List the words that a model of counts knows."""
    return set(lm.model.words)  # type: ignore[attr-defined]


def test_counts_of_the_sample() -> None:
    """They answer where nothing else was counted, even before there are tables; each language has its own.

    The share of a cache is in the signature, and the model without one stays as it was.
    """
    assert load_model().model_id == load_model("count").model_id == load_model(SAMPLE).model_id == SAMPLE
    assert masked_lm.is_count_model(load_model())
    plain = load_model().model.signature
    assert load_model("count", "zh").model.signature != plain
    assert load_model(cache=0.1).model.signature == plain.replace("cache:0", "cache:0.1")
    assert load_model().model.signature == plain


def test_what_cannot_be_counted(tmp_path: Path) -> None:
    """No words; a folder that holds something else is left alone."""
    with pytest.raises(BadInput, match="there is nothing to count: expected at least one sentence with a word"):
        count_file(["", " "], tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(BadInput, match=r"mine: exists and is not a model of Undertone"):
        count_file(TEXTS, tmp_path / "mine")
    with pytest.raises(BadInput, match="is there already; choose another folder"):
        masked_lm.train(TEXTS, tmp_path / "mine")


def test_the_corpus_is_what_there_is_of_a_language(tables: Path) -> None:
    """Distinct texts of comments and articles up to a day, in order; blank ones are none."""
    write_comments(DAY, "b c", "a b", "a b")
    write_comments(LATER, "c d")
    chinese = {"thread_id": "t2", "title": "标题", "summary": " ", "text": "标题", "lang": "zh"}
    articles = filled("articles", {"title": "a b", "text": "e f", "summary": None, "lang": "en"}, chinese)
    warehouse.overwrite("articles", warehouse.make_slice(day=DAY), articles)
    assert masked_lm.load_corpus("en", DAY).to_list() == ["a b", "b c", "e f"]
    for day in (LATER, None):
        assert masked_lm.load_corpus("en", day).to_list() == ["a b", "b c", "c d", "e f"]
    assert masked_lm.load_corpus("zh", DAY).to_list() == ["标题"]


@pytest.mark.usefixtures("tables")
def test_counts_of_the_corpus_are_in_force() -> None:
    """The model is promoted with evaluations on texts held out; counting again gives the same model."""
    write_comments(DAY, *MANY)
    model_id = count_corpus("en", DAY)
    assert model_id
    assert load_model().model_id == load_model(model_id).model_id == load_model("count", "en", DAY).model_id == model_id
    assert load_model("count", "zh").model_id == SAMPLE
    row = warehouse.scan("models").select("kind", "model_id", "encoder", "is_promoted").collect().row(0)
    assert row == (masked_lm.name_kind("en"), model_id, "count", True)
    numbers = warehouse.scan("evaluations").sort("metric").collect()
    assert numbers["metric"].to_list() == ["accuracy", "cross_entropy", "word_count"]
    accuracy, entropy, size = numbers.iter_rows(named=True)
    assert 0 <= accuracy["value"] <= 1
    assert 0 < entropy["value"] < np.log(len(list_words(load_model())) + 1)  # better than any word alike
    assert (accuracy["split"], size["split"]) == ("test", "train")
    assert 0 < accuracy["pair_count"] < size["value"]
    assert 0 < accuracy["baseline"] < 0.2  # a word in twelve is "is"
    rows = warehouse.scan("models").collect()
    assert count_corpus("en", DAY) == model_id
    assert warehouse.scan("evaluations").sort("metric").collect().equals(numbers)
    assert warehouse.scan("models").collect().equals(rows)


@pytest.mark.usefixtures("tables")
def test_days_up_to_the_one_given_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later day's words are in its own model alone; each day is answered by its own, none by a later one's.

    The later one is compared with the one in force on the same held-out texts.
    """
    monkeypatch.setattr(promotion, "MIN_ROWS", 2)
    write_comments(DAY, *MANY)
    first = count_corpus("en", DAY)
    write_comments(LATER, *(f"Snow fell on street {number}." for number in range(60)))
    assert count_corpus("en", DAY) == first
    second = count_corpus("en", LATER)
    assert second
    assert second != first
    comparisons = model_registry.read_model(second)["promotion"]["comparisons"]
    assert [row["rival"] for row in comparisons] == [masked_lm.MOST_FREQUENT, promotion.IN_FORCE]
    assert {first, second} == {load_model("count", "en", day).model_id for day in (DAY, LATER)}
    assert load_model().model_id == second
    assert "Snow" in list_words(load_model())
    assert "Snow" not in list_words(load_model("count", "en", DAY))


@pytest.mark.usefixtures("tables")
def test_each_language_with_counts_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One without text has none, and one whose model is another is not counted."""
    write_comments(DAY, *MANY[:5])
    english, chinese = masked_lm.count_all(DAY)
    assert english
    assert chinese is None
    monkeypatch.setenv("UNDERTONE_MASKED_LM", "en=some/model@0123456789abcdef0123456789abcdef01234567")
    assert masked_lm.count_all(DAY) == [None]
    assert masked_lm.count_all(DAY, "zh=some/model") == []
    assert masked_lm.count_all(DAY, "count") == [english, None]


def test_a_transformer_by_its_folder(bert: Path) -> None:
    """It has states, its revision names it, and it is loaded once."""
    lm = load_model(str(bert))
    assert not masked_lm.is_count_model(lm)
    assert lm.model.signature.startswith(f"hf:{bert.name}@{lm.model_id[:12]}")
    assert load_model(str(bert)).model is lm.model
    assert "|masks:one|" in lm.model.signature
    assert "|masks:pieces|" in load_model(f"{bert}|pieces").model.signature


def test_a_folder_that_was_replaced_is_loaded_again(bert: Path, tmp_path: Path) -> None:
    """Another model in the same place has another revision; nothing that was held of the old one is used."""
    folder = tmp_path / "model"
    shutil.copytree(bert, folder)
    first = load_model(str(folder))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-3}))
    second = load_model(str(folder))
    assert second.model is not first.model
    assert second.model_id != first.model_id


def test_the_setting_names_models(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting names one model for all languages or one each, else counts; a given ref precedes it."""
    monkeypatch.setenv("UNDERTONE_MASKED_LM", str(bert))
    assert [settings.masked_lm(lang) for lang in ("en", "zh")] == [str(bert)] * 2
    assert not masked_lm.is_count_model(load_model(None, "zh"))
    monkeypatch.setenv("UNDERTONE_MASKED_LM", f"zh={bert}, ja=count")
    assert [settings.masked_lm(lang) for lang in ("en", "zh", "ja")] == ["count", str(bert), "count"]
    cases = {(None, "en"): True, (None, "zh"): False, ("count", "zh"): True, (f"en={bert}", "en"): False}
    cases[f"en={bert}", "zh"] = False  # not named there, so as the environment has it
    assert {case: masked_lm.is_count_model(load_model(*case)) for case in cases} == cases
    assert settings.masked_lm("ja", f"en={bert}") == "count"
    monkeypatch.delenv("UNDERTONE_MASKED_LM")
    assert settings.masked_lm("en") == "count"


@pytest.mark.usefixtures("tables")
def test_an_encoder_is_adapted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same texts and recipe give the existing folder; other texts or another day give another."""
    folders: list[Path] = []

    def train(texts: list[str], out: Path, *_: object, **__: object) -> None:
        assert texts
        out.mkdir(parents=True)
        folders.append(out)

    monkeypatch.setattr(masked_lm, "train", train)
    with pytest.raises(Missing, match=f"no comment or article in en up to {DAY} to adapt an encoder to"):
        masked_lm.adapt(DAY)
    write_comments(DAY, *TEXTS)
    assert masked_lm.adapt(DAY) == masked_lm.adapt(DAY) == f"en={folders[0]}"
    assert folders[0].parent == settings.models()
    write_comments(LATER, "Snow fell.")
    assert masked_lm.adapt(DAY) == f"en={folders[0]}"
    assert masked_lm.adapt(LATER) == f"en={folders[1]}"
    assert len({*folders}) == len(folders) == 2
