"""The page of NDD: every number given is on it, the paper's beside it, sentences are text, and what lacks is said."""

import re
from html import unescape
from typing import Any

import polars as pl
import pytest

from pipeline.examples.ndd import pairs as examples
from pipeline.metrics.ndd import pruning
from pipeline.papers import ndd as paper
from pipeline.report.ndd import figures
from pipeline.report.ndd.page import render
from tests.support.pages import HOSTILE, Page, check_names, check_print, check_sections, tables, texts, words

DAY = "2026-11-22"


def frame(columns: str, rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    """Make a frame of rows; columns are separated by blanks."""
    return pl.DataFrame(rows, schema=columns.split(), orient="row", infer_schema_length=None)


def spread(value: float, width: float = 0.02) -> tuple[float, float, float]:
    """Return a value and its interval."""
    return value, value - width, value + width


# fmt: off
SCORES = {
    "en": {"ndd": (0.61, 0.42, -0.02), "ndd_sc": (0.65, 0.45, 0.01), "ppl_deleter": (0.5, 0.5, 0.06),
           "unedited": (0.6, 1.0, 0.56), "tail": (0.7, 0.41, -0.03)},
    "zh": {"fast_ndd": (0.7, 0.6, -0.08), "unedited": (0.82, 1.0, 0.32), "ours": (0.6, 0.7, 0.02)},
}
COMPRESSIONS = frame("source lang by metric value low high n", [
    (source, lang, system, metric, *spread(value), 1000 if lang == "en" else 150)
    for source, lang in (("google", "en"), ("日常 colloquial", "zh")) for system, row in SCORES[lang].items()
    for metric, value in zip(("f1_macro", "ratio", "ratio_delta", "rouge_2", "bleu_1"), (*row, 0.41, 0.37),
                             strict=True)])
SIGNIFICANCE = frame("source one other metric difference low high p", [
    ("google", "ndd_sc", "ppl_deleter", "f1_macro", 0.15, 0.1, 0.2, 0.00002),
    ("google", "ndd", "tail", "rouge_2", -0.05, -0.1, 0.01, 0.08)])
POSITIONS = frame("source system bin value n", [
    (source, system, place, (10 - place) / 20 + 0.1 * (system == "gold"), 300)
    for source in ("google", "日常 colloquial") for system in ("ndd", "gold") for place in range(10)])
RATIOS = frame("threshold longest source metric value", [
    (threshold, longest, "google", metric, value + 0.01 * longest)
    for threshold, longest in ((4.0, 5), (1.0, 5), (3.0, 2)) for metric, value in (("f1_macro", 0.5), ("ratio", 0.4))])
TESTS = frame("test measure metric value low high n", [
    (test, measure, metric, *spread(value), 800)
    for test in ("supervised", "lemma", "synonym_antonym") for measure in ("cosine", "ndd", "ndd_kl")
    for metric, value in (("pearson", 0.21), ("paired_accuracy", 0.6))])
OVERLAP = frame("measure threshold metric value low high n", [
    (measure, least, "pearson", *spread(0.5 - least * slope), 900)
    for measure, slope in (("ndd", -0.1), ("cosine", 0.7)) for least in (-1.0, 0.0, 0.5, 0.9, 1.0)])
DISTRIBUTIONS = frame("test measure label quantile value n", [
    ("lemma", measure, label, share, share / 100 * scale, 70)
    for measure in ("ndd", "ndd_kl") for label, scale in (("negative", 0.8), ("positive", 0.4))
    for share in range(0, 101, 5)])
PRUNING = frame("system threshold metric value low high n", [
    (system, 1.0, metric, *spread(0.1 + 0.1 * i), 400) for system in ("ndd", "random", "fast_ndd")
    for i, metric in enumerate(pruning.DEPTHS + pruning.SUBTREES)])
PREDICATES = frame("measure edit metric value low high n", [
    (measure, edit, metric, *spread(0.5), 90) for measure, edit in (("ndd", "delete"), ("perplexity", "mask"))
    for metric in ("map", "auc_pooled", "auc_mean")])
SHIFT = frame("source other metric value low high n", [
    ("weibo", "implicitness", "spearman", *spread(-0.2), 500), ("weibo", "implicitness", "partial", *spread(0.1), 500),
    ("weibo", "word_count", "spearman", *spread(0.4), 500)])
SHIFT_VALUES = frame("source quantile value", [("weibo", share, share / 200) for share in range(0, 101, 5)])
HUMAN = frame("system metric mean low high n", [
    (system, field, *spread(3.5, 0.2), 100) for system in ("ndd_sc", "ours") for field in ("syntax", "semantics")])
ENGLISH = ["The", "old", "ferry", ",", "late", "again", ",", "left", "on", "Thursday", "with", "one", "goat", "."]
CHINESE = ["新线", "周末", "开通", "，", "不少", "人", "说", "终于", "不用", "换乘", "了", "。"]
SENTENCES: list[dict[str, Any]] = [
    {"source": "own", "lang": "en", "words": ENGLISH, "rounds": [0, 2, 0, 1, 1, 1, 1, 0, 0, 0, 3, 3, 3, 0],
     "system": "ndd_sc", "gold": [True, False, True] + [False] * 4 + [True] * 3 + [False] * 3 + [True]},
    {"source": "own", "lang": "zh", "words": CHINESE, "rounds": [0, 1, 0, 0, 7, 7, 7, 0, 0, 0, 0, 0],
     "system": "unedited", "gold": None},
]
PAIRS: list[dict[str, Any]] = [
    {"one": ["a", "small", "house"], "other": ["a", "huge", "house"], "value": 0.3,
     "rows": [{"word": "a", "place": 0, "divergence": 0.2, "weight": 0.5},
              {"word": "house", "place": 2, "divergence": 0.4, "weight": 0.5}]},
    {"one": ["冷"], "other": ["热"], "value": 0.9,
     "rows": [{"word": "[CLS]", "place": -1, "divergence": 0.9, "weight": 1.0}]},
]
SIGNATURE = "masked:bert-base-cased|revision:abcd"
DATA: dict[str, Any] = {
    "compressions": COMPRESSIONS, "significance": SIGNIFICANCE, "positions": POSITIONS, "ratios": RATIOS,
    "tests": TESTS, "overlap": OVERLAP, "distributions": DISTRIBUTIONS, "pruning": PRUNING, "predicates": PREDICATES,
    "shift": SHIFT, "shift_values": SHIFT_VALUES, "human": HUMAN, "examples": SENTENCES, "explained": PAIRS,
}
# fmt: on
NAMES = list(DATA)
FRAMES = [name for name in NAMES if name not in ("examples", "explained")]
NEWS, DAILY = "Compression quality: google (en)", "Compression quality: 日常 colloquial (zh)"
ROUNDS, WORDS = "Dropped words by round", "Contribution of words to the distance"
TREE, SEEN = "Dropped words in the syntax tree", "Agreement with labels"


@pytest.fixture(scope="module")
def page() -> str:
    return render(DAY, [SIGNATURE], **DATA)


@pytest.fixture(scope="module")
def page_tables(page: str) -> dict[str, list[list[str]]]:
    return {title: [[*map(unescape, row)] for row in rows] for title, rows in tables(page).items()}


def cut_figure(html: str, title: str) -> str:
    return next(part for part in html.split("<h2 ")[1:] if title in part).split("<table")[0]


def test_every_part_is_there(page: str, page_tables: dict[str, list[list[str]]]) -> None:
    """Compressors stand by source, letters can be read in print; rows in another order change nothing."""
    check_sections(page, list(page_tables), len(NAMES) - 3)
    assert len(page_tables) == len(NAMES) + 2
    text = texts(page)
    assert "Not measured" not in text
    assert SIGNATURE in text
    assert "7 systems 1,150 sentences compressed 3 tests of the measure" in text
    assert "come from its own models (BERT, RoBERTa and SpanBERT) and data" in text
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        check_print(svg)
    shuffled = {name: DATA[name].sample(fraction=1, shuffle=True, seed=3) for name in FRAMES}
    assert render(DAY, **{**DATA, **shuffled}, signatures=[SIGNATURE]) == page


@pytest.mark.parametrize(
    ("signatures", "is_warned"),
    [(["count:0123|words:9"], True), ([SIGNATURE, "compression:ndd|count:0123|words:9"], True), ([SIGNATURE], False),
     (["account:1"], False), ([], False)],
)  # fmt: skip
def test_counts_are_no_result(signatures: list[str], is_warned: bool) -> None:
    """Where a model is one of counts, the page says on top that nothing on it is a result."""
    html = render(DAY, shift=SHIFT, signatures=signatures)
    alerts = [attrs for _, attrs in Page(html).elements if attrs.get("role") == "alert"]
    assert len(alerts) == is_warned
    assert ("Demonstration only, no result: counts of two neighbours" in texts(html)) == is_warned
    if is_warned:
        assert html.index("Demonstration only") < html.index("<h2")


def test_compressors_stand_beside_the_papers(page_tables: dict[str, list[list[str]]], page: str) -> None:
    """Each system's row is followed by the paper's, F1 by its CR; table 3 for English, table 5 for Chinese."""
    news, daily = page_tables[NEWS], page_tables[DAILY]
    assert news[0] == ["NDD", "here", "61.0 59.0 to 63.0", "0.42 0.40 to 0.44", "−0.02", "★ 41.0 39.0 to 43.0",
                       "★ 37.0 35.0 to 39.0", "1,000"]  # fmt: skip
    assert news[1] == ["NDD", "paper", "61.2", "0.41", "−0.03", "43.2", "–", "–"]
    assert news[2][:5] == ["NDD+SC", "here", "★ 65.0 63.0 to 67.0", "0.45 0.43 to 0.47", "★ +0.01"]
    assert ["SLAHAN, supervised", "paper", "85.5", "0.42", "−0.02", "71.4", "–", "–"] in news
    assert ["BERTScore+SC", "paper", "47.2", "0.39", "−0.05", "18.8", "–", "–"] in news
    assert daily[1] == ["Fast NDD", "paper", "73.9", "0.67", "−0.02", "48.4", "64.1", "–"]
    assert ["SOM-NCSCM, supervised", "paper", "89.7", "0.68", "+0.00", "–", "84.0", "–"] in daily
    assert not [row for row in daily if row[0] == "ours" and row[1] == "paper"]
    text = texts(page)
    assert "The best search system is NDD+SC, with an F1 of 65.0 % at a CR of 0.45." in text
    assert "The best baseline that reads no words is Drop tail, with 70.0 %." in text
    assert "Copying has 60.0 % at a CR of 1.00; 2 of 3 search systems have more." in text
    assert "Copying has 82.0 % at a CR of 1.00; 0 of 2 search systems have more." in text


@pytest.mark.parametrize(
    ("source", "tables", "f1"),
    [
        ("google", "tables 3 and 12", 61.2), ("my BNC", "table 4", None), ("broadcast", "table 4", None),
        ("own", "", None),
    ],
)  # fmt: skip
def test_a_source_has_the_papers_numbers_of_its_data_set(source: str, tables: str, f1: float | None) -> None:
    """They go by the name of the source, not by its language; a source of another name has none."""
    name, printed = paper.find_compressors(source)
    assert (name.partition(",")[0], printed.get("ndd", {}).get("f1_macro")) == (tables, f1)
    rows = COMPRESSIONS.filter(source="google").with_columns(source=pl.lit(source))
    html = texts(render(DAY, compressions=rows))
    assert ("The paper's numbers are from" in html, "No numbers of the paper" in html) == (bool(tables), not tables)


def test_f1_is_drawn_against_cr(page: str) -> None:
    """The figure has each system once in its legend, the copy baseline, the gold's CR and what hollow marks are."""
    labels = words(cut_figure(page, NEWS))
    expected = ["NDD", "NDD+SC", "PPL Deleter", "Unedited", "F1 of copying", "Drop tail", "CR of the gold"]
    assert [name for name in labels if name in expected] == expected
    assert {"CR: share of kept words", "F1 in %", "hollow: paper"} <= set(labels)
    alone = figures.draw_compressions(COMPRESSIONS.filter(pl.col("by") == "ours"), paper.TABLE_5)
    assert "hollow: paper" not in words(alone)
    assert figures.draw_compressions(COMPRESSIONS.filter(pl.col("metric") == "f1_macro"), paper.TABLE_3) == ""


def test_measures_stand_beside_table_1(page_tables: dict[str, list[list[str]]], page: str) -> None:
    """Tests, named as `examples.ndd.pairs` makes them, stand in the order of table 1, each with the paper's r."""
    assert set(paper.TESTS) == {*examples.TESTS, "supervised"}
    rows = page_tables[SEEN]
    assert [row[0] for row in rows[::3]] == ["Syn–Ant", "Lemma", "Supervised"]
    assert rows[0] == ["Syn–Ant", "NDD", "0.210 0.190 to 0.230", "0.600 0.580 to 0.620", "0.191", "800"]
    assert [row[4] for row in rows[:3]] == ["0.191", "–", "0.078"]
    assert "printed in the paper, on other models and data" in words(cut_figure(page, SEEN))


def test_thresholds_trees_predicates_and_people(page_tables: dict[str, list[list[str]]]) -> None:
    """Rows of tables 6, 7, 8 and 13 stand beside ours where the paper has such a row."""
    ratios = page_tables["Compression ratio by threshold"]
    assert [row[1:4] for row in ratios] == [
        ["4", "5", "here"], ["4", "5", "paper"], ["1", "5", "here"], ["1", "5", "paper"], ["3", "2", "here"]
    ]  # fmt: skip
    assert ratios[1][4:] == ["44.6", "0.16"]
    assert [row[:3] for row in page_tables[TREE]] == [
        ["NDD", "1", "here"], ["NDD", "1", "paper"], ["Fast NDD", "1", "here"], ["Random", "1", "here"],
        ["Random", "1", "paper"],
    ]  # fmt: skip
    assert page_tables[TREE][1][3:] == ["1", "19", "20", "60", "90", "81", "66"]
    assert page_tables[TREE][0][3] == "10 8 to 12"
    predicates = page_tables["Predicate detection"]
    assert predicates[0][-2:] == ["53.1 / 77.0 · 62.5 / 80.8 · 48.8 / 77.1", "90"]
    assert predicates[1][:3] == ["mask", "ΔPPL", "50.0 48.0 to 52.0"]
    people = page_tables["Human grades of compressions"]
    assert [row[-2] for row in people] == ["4.08 / 3.62", "–"]


def test_overlap_distributions_positions_shift_and_differences(page_tables: dict[str, list[list[str]]]) -> None:
    """Ends of figure 3 have names, quantiles are those of the middle, tenths are in percent, a tiny p says so."""
    thresholds = [row[0] for row in page_tables["Correlation by word overlap: Pearson's r"]]
    assert thresholds == ["none", "> 0", "> 0.5", "> 0.9", "all"]
    assert page_tables["Distances of edits: NDD"] == [
        ["Lemma", "positive", "0.020", "0.100", "0.200", "0.300", "0.380", "70"],
        ["Lemma", "negative", "0.040", "0.200", "0.400", "0.600", "0.760", "70"],
    ]
    assert page_tables["Kept words by position"][0] == ["google", "gold", *map(str, range(60, 14, -5))]
    assert [row[-1] for row in page_tables["Significance of differences"]] == ["< 0.0001", "0.0800"]
    shift = ["word count", "weibo", "0.400 0.380 to 0.420", "–", "500"]
    assert page_tables["Correlations of the context shift"][1] == shift
    assert page_tables["Context shift by source"] == [["weibo", "0.025", "0.125", "0.250", "0.375", "0.475"]]


def test_sentences_show_what_each_round_took(page_tables: dict[str, list[list[str]]]) -> None:
    """Words that stay, those that each round dropped, and those that people keep, with blanks only in English."""
    kept, dropped = "The ferry left on Thursday .", "1: , late again , · 2: old · 3: with one goat"
    assert page_tables[ROUNDS] == [
        ["own", "NDD+SC", kept, dropped, "The ferry left on Thursday .", "6 of 14"],
        ["own", "Unedited", "新线开通，终于不用换乘了。", "1: 周末 · 7: 不少人说", "–", "8 of 12"],
    ]


def test_words_have_shares_of_the_distance(page_tables: dict[str, list[list[str]]]) -> None:
    """Each shared word has its share of the distance of its pair, [CLS] stands in front."""
    assert page_tables[WORDS] == [
        ["a small house", "a huge house", "a", "0.300", "1", "0.200", "0.500", "33.3"],
        ["a small house", "a huge house", "house", "0.300", "3", "0.400", "0.500", "66.7"],
        ["冷", "热", "[CLS]", "0.900", "0", "0.900", "1.000", "100.0"],
    ]


def test_names_stay_text(page: str) -> None:
    """Hostile sentences, sources and systems add no element and no handler."""
    frames: dict[str, Any] = {}
    for name in FRAMES:
        row = DATA[name].head(1)
        strings = [column for column, dtype in row.schema.items() if dtype == pl.String and column != "metric"]
        frames[name] = pl.concat(
            row.with_columns(pl.lit(text).alias(column) for column in strings) for text in HOSTILE[:2]
        )
    sentences = [{"source": text, "lang": text, "words": [text[:40], text[:40]], "rounds": [0, 1], "system": text,
                  "gold": [True, False]} for text in HOSTILE]  # fmt: skip
    pairs = [{"one": [text[:40], "b"], "other": [text[:40]], "value": None,
              "rows": [{"word": text[:40], "place": 0, "divergence": 0.1, "weight": 1.0}]}
             for text in HOSTILE]  # fmt: skip
    html = render(HOSTILE[0], **frames, examples=sentences, explained=pairs, signatures=HOSTILE)
    check_names(html, page, 2)
