"""The page: one file, no network, comments as text and never as markup."""

import json
import shlex
from typing import Any

import polars as pl
import pytest

from pipeline.report.daily.page import render
from tests.support.pages import HOSTILE, Page, check_offline, texts


def test_comments_and_titles_stay_text(contents: Any) -> None:
    """A hostile comment or title adds no element and no handler: it is read as the text it is."""
    row = contents["most"].head(1).with_columns(words=pl.lit(None, contents["most"].schema["words"]))
    contents["most"] = contents["least"] = pl.concat([row] * len(HOSTILE))
    plain = Page(render(contents))
    contents["most"] = pl.concat(row.with_columns(text=pl.lit(text), title=pl.lit(text)) for text in HOSTILE)
    html = render(contents)
    page = Page(html)
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert [text for text in HOSTILE if page.texts.count(text) < 2] == []
    assert [text for text in HOSTILE if text in html and set(text) & set("<>&\"'")] == []


@pytest.mark.parametrize("text", ["Nice hat.", *HOSTILE[:2]])
def test_words_are_coloured_by_their_change(contents: Any, text: str) -> None:
    """Red above 0, blue below, with the change as a title; hostile words are text; words of another text are none."""
    parts = [text[:5], text[5:8], text[8:]]
    words = [{"word": word, "change": change} for word, change in zip(parts, (0.25, -0.1, 0.0), strict=True) if word]
    rows = pl.DataFrame({"words": [words, [{"word": "absent", "change": 1.0}]]})
    contents["most"] = contents["most"].with_columns(text=pl.Series([text, "plain"]), words=rows["words"])
    contents["least"] = contents["least"].clear()
    page = Page(render(contents))
    marks = [attrs for tag, attrs in page.elements if tag == "mark"][2:]  # after the legend
    assert [(mark.get("class"), mark["style"], mark["title"]) for mark in marks] == [
        (None, "--share: 50%", "+0.250"), ("less", "--share: 20%", "−0.100"),
    ]  # fmt: skip
    assert text in "".join(page.texts)
    assert "plain" in page.texts
    assert page.tags.isdisjoint({"script", "img", "iframe"})


def test_model_fields_and_signatures_stay_text(contents: Any) -> None:
    """What came from configuration, such as a folder's name in a signature, is escaped as well."""
    contents["model"] |= dict.fromkeys(("encoder", "config", "code_version"), HOSTILE[0])
    contents["model"] |= {"completion_models": [HOSTILE[1]]}
    contents["signatures"] = [HOSTILE[2]]
    contents["day"] = HOSTILE[0]
    assert Page(render(contents)).tags.isdisjoint({"script", "img"})


def test_numbers_are_shown(contents: Any) -> None:
    """Counts, means, the funnel with its reasons and accuracies stand on the page, which loads nothing."""
    texts = " ".join(" ".join(Page(render(contents)).texts).split())
    for part in (
        "4 comments scored", "2 sources", "1.000 mean implicitness",  # of 0, .25, 1.75, 2
        "7 rows read", "3 rows dropped, each with a reason",  # 5 + 2 and 3 + 0, each run once
        "clean: 1 empty; deduplicate: 2 exact duplicate",
        "implicitness_accuracy test all 0.952 0.844 longer_is_implicit 26",
        "weibo zh 2 1.000 54 1.061 1.000 56", "zhihu en 1 2.000 – – 2.000 –", "34 mean percentile",  # of 10, 90, 2
        "1.750 – – 你可真准时。", "2.000 99 veiled Nice hat .",
        "the reference corpus sample in the same language",
        "implicitness|model:abab|lang:en",
    ):  # fmt: skip
        assert part in texts
    check_offline(render(contents))


def test_the_first_screen_stays_text(contents: Any) -> None:
    """Hostile sources, judges, comments and titles are read as text; a source cannot leave its quotes in a command."""
    plain, weeks, names = Page(render(contents)), contents["weeks"], pl.Series(HOSTILE[:2])
    weeks["changes"] = weeks["changes"].with_columns(source=names, judge=names)
    weeks["examples"] = weeks["examples"].with_columns(source=names, text=names, title=names)
    contents["scores"] = contents["scores"].with_columns(source=pl.Series([*HOSTILE[:3], "it's"]))
    page = Page(render(contents))
    assert page.tags <= plain.tags
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert all(page.texts.count(name) >= 3 for name in names)
    commands = [text for text in page.texts if text.startswith("undertone browse --where") and "among" in text]
    views = [json.loads(shlex.split(command)[-1]) for command in commands]
    assert {view["among"]["source"][0] for view in views} == {*HOSTILE[:3], "it's"}
    assert views[0]["between"] == {"day": ["2026-11-19", "2026-11-19"]}


def test_the_change_in_sentences(contents: Any) -> None:
    """Up or down with its interval, the share above last week's quarter, what a judge says, counts; else why not."""
    page = texts(render(contents))
    for sentence in (
        "The mean implicitness changed clearly in 1 of 2 sources, with intervals of 95 %: weibo (zh) rose from 1.000 "
        "to 1.100: +0.100 (+0.050 to +0.150).",
        "In weibo (zh), 40 % of the comments are more implicit than three quarters of last week's; then it was 25 %.",
        "As the judge gpt:scale would score weibo (zh), its mean changed by +0.080 (−0.010 to +0.170).",
        "2,400 comments in 180 threads are compared with 2,000 of last week (+20 %).",
        "↑ raises it Nice hat. A hat zhihu 2.000 99 3 ↓ lowers it 你可真准时。",
        "zhihu (zh) 7 1,200 1,000 90 80 1.100 1.000 +0.100 –",
    ):  # fmt: skip
        assert sentence in page
    changes = contents["weeks"]["changes"]
    falling = changes.head(1).with_columns(change=-0.02, low=-0.05, is_clear=False)
    for rows, sentences in (
        (changes.tail(1), ("an interval needs ten threads in both weeks.", "no judge corrected them")),
        (falling, ("each interval of 95 % has 0 in it.", "In weibo (zh), 20 % of the comments are more explicit than")),
    ):
        contents["weeks"]["changes"] = rows
        page = texts(render(contents))
        assert "No source changed clearly: " in page
        assert all(sentence in page for sentence in sentences)
    contents["weeks"] = {}
    assert "No comparison: no source has scores by this model" in render(contents)


def test_figures_have_text_and_comments_their_language(contents: Any) -> None:
    """Each figure is an image with a name, described by a part of the page; each comment has its language."""
    elements = Page(render(contents)).elements
    figures = [attrs for _, attrs in elements if (attrs.get("class") or "").startswith("figure")]
    assert [figure["role"] for figure in figures if figure["aria-label"]] == ["img"] * 3
    described = {name for figure in figures for name in (figure["aria-describedby"] or "").split()}
    assert described == {attrs["id"] for _, attrs in elements if attrs.get("id") in described}
    langs = [attrs["lang"] for _, attrs in elements if attrs.get("class") == "text"]
    assert langs == ["en", "zh", "en", "zh", "zh", "en"]


def test_warnings(contents: Any) -> None:
    """A model trained on the sample and languages other than English are each warned of; else there is no warning."""
    html = render(contents)
    assert "Scores in zh are an extension" in html
    assert html.count('class="warn"') == 1
    contents |= {"weakness": "The model is weak here (zh 0.48).", "reference": None}
    contents["model"] = contents["model"] | {"completion_models": ["someone", "undertone-sample"]}
    html = render(contents)
    assert '<p class="warn">The model is weak here (zh 0.48).' in html
    assert "undertone reference build" in html
    assert "learned from the sample that ships with Undertone. Its scores are a demonstration" in html
    assert html.count('class="warn"') == 3
    contents |= {"scores": contents["scores"].with_columns(lang=pl.lit("en")), "weakness": ""}
    contents["model"] = contents["model"] | {"completion_models": ["someone"]}
    assert 'class="warn"' not in render(contents)
