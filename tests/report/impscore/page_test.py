"""The page of studies: one file, no network, names as text, parts that are missing left out."""

import datetime
import re
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.metrics.impscore.studies import LABELS
from pipeline.report.impscore.page import _PARTS, STUDIES, render
from tests.report.impscore import samples
from tests.report.impscore.samples import ABLATION, AUDIT, DATA_SETS, DETECTION, DIVERSITY, SENSITIVITY, TRIPLES
from tests.support.pages import HOSTILE, Page, check_names, check_print, check_sections, texts

EVALUATIONS = pl.DataFrame(
    {"metric": ["implicitness_accuracy", "implicitness_accuracy", "kendall_tau", "implicitness_accuracy"],
     "split": ["test", "train", "test", "test"], "subset": ["all", "all", "groups:en", "all"], "epoch": [0, 0, 0, 7],
     "value": [0.952, 0.999, 0.751, 0.444], "baseline": [0.85, None, 0.1, None],
     "baseline_name": ["length", None, "words", None], "pair_count": [1204, 9000, 20, 1204]}
)  # fmt: skip
PARTS: dict[str, Any] = {
    "triples": TRIPLES,
    "audit": AUDIT.with_columns(model=pl.lit(0.95)),
    "evaluations": EVALUATIONS,
    "studies": pl.concat([ABLATION, SENSITIVITY, DATA_SETS, DIVERSITY, DETECTION,
                          samples.VALIDATION, samples.CALIBRATION, samples.PEOPLE]),
    "spaces": ([np.eye(4, 2), np.ones((4, 2))], ["rent", "rent", "dog", "dog"], (0.51, 0.12)),
}  # fmt: skip

TITLES = {name: part.title for name, part in (_PARTS | STUDIES).items()}


def contents(**parts: Any) -> dict[str, Any]:
    """Contents of a page, by default of every part."""
    return {"day": "2026-11-19", "model_id": "ab" * 32, **(parts or PARTS)}


def headings(html: str) -> list[str]:
    """The parts of the page, from the links on its top."""
    page = Page(html)
    assert len([1 for tag, _ in page.elements if tag == "a"]) == html.count("<h2")
    return [title for title in TITLES.values() if f'">{title}</h2>' in html]


@pytest.fixture(scope="module")
def full_page() -> str:
    return render(**contents())


def test_every_part_is_there(full_page: str) -> None:
    """Each part names the paper's section, all but four have a figure; rows in another order change nothing."""
    check_sections(full_page, list(TITLES.values()), len(TITLES) - 4)
    sentences = [line for line in full_page.split("\n") if 'class="says"' in line]
    assert len(sentences) == len(TITLES)
    assert all("paper" in line or "section" in line for line in sentences)
    reversed_rows = {name: PARTS[name].reverse() for name in ("triples", "audit", "studies")}
    assert render(**contents(**{**PARTS, **reversed_rows})) == full_page
    for svg in re.findall(r"<svg.*?</svg>", full_page, re.DOTALL):
        check_print(svg)


def test_a_part_alone() -> None:
    """A page of one part, or of one study, has that part alone; an ablation of one metric compares nothing."""
    assert headings(render(**contents(evaluations=EVALUATIONS))) == [TITLES["evaluations"]]
    html = render(**contents(studies=ABLATION.head(2)))
    assert headings(html) == [TITLES["ablation"]]
    assert "The lowest implicitness accuracy" not in texts(html)


def test_numbers_are_shown(full_page: str) -> None:
    """What was measured stands in the sentences and tables, the paper's numbers beside it."""
    page_text = texts(full_page)
    for sentence in (
        "The mean implicitness I is 1.250 (P 60) for implicit sentences and 0.425 (P –) for explicit ones. P: "
        "percentile in the reference. The mean pragmatic distance ΔP is 0.250 for positive pairs and 1.500 for "
        "negative ones. The paper has 1.296 and 0.514 for I, 0.685 and 1.675 for ΔP",
        "I of implicit sentences 1.250 (P 60) 1.000 (P 50)",
        "On all sources, length alone finds the implicit sentence in 0.850 of cases, and the model in 0.950.",
        "all 0.850 0.700 0.950 300", "esnli 0.900 0.500 0.950 120",
        "implicitness_accuracy test all length 0.952 0.850 1,204", "kendall_tau test groups:en words 0.751 0.100 20",
        "The mean silhouette of the groups is 0.510 in the pragmatic space and 0.120 in the semantic space.",
        "ranking people kendall_tau 0.700 1 5 50",
        "with the cosine for I is 0.946. The highest with the Euclidean distance is 0.929.",
        "cosine euclidean pragmatic → semantic 0.953 0.010 0.962 0.010 3 0.953 / 0.962",
        "best at γ1 = 0.5, γ2 = 0.5, α = 0.5",
        "dghsd is the most implicit, 0.800 (P 61), toxigen is the least implicit, 0.600 (P –)",
        "dghsd implicit 1.100 (P –) 0.250 0.700 (P –) 0.900 (P –) 1.100 (P –) 1.300 (P –) 1.500 (P –) 3,439",
        "Random pairs of davidson have the smallest median ΔP: 0.900.",
        "bin with texts: gpt from 0.900 to 0.200; llama from 0.900 to 0.300.",
        "gpt 0.25–0.50 7 0.800 0.700 0.850 1,001 51",
        "length, punctuation, words: shipped model on 1 of 2 sets. Not at hand: pairs of yours.",
    ):  # fmt: skip
        assert sentence in page_text


def test_only_the_final_model_on_the_test_part(full_page: str) -> None:
    """Epochs and the training part are left out of the numbers; where nothing was tested, what there is is shown."""
    assert "0.444" not in texts(full_page)
    assert "0.999" not in texts(full_page)
    trained = render(**contents(evaluations=EVALUATIONS.filter(pl.col("split") == "train")))
    assert "implicitness_accuracy train all – 0.999 – 9,000" in texts(trained)
    untested = render(**contents(triples=TRIPLES.filter(pl.col("split") == "train")))
    assert "1 triples of the train split" in untested


def test_studies_are_grouped_by_model() -> None:
    """Studies of trainings come first, then the model's, then others'; the newest day of each is shown."""
    diversity = DIVERSITY.with_columns(model_id=pl.lit("cd" * 32))
    data_sets = DATA_SETS.with_columns(model_id=pl.lit("ab" * 32))
    html = render(**contents(studies=pl.concat([diversity, data_sets, SENSITIVITY.head(3)])))
    by_model = [f"{TITLES[name]} (model {model * 6})" for name, model in (("data_sets", "ab"), ("diversity", "cd"))]
    assert re.findall(r">([^<]+)</h2>", html) == [TITLES["sensitivity"], *by_model]
    old = DIVERSITY.with_columns(pl.col("subset").replace("davidson", "older"), day=datetime.date(2026, 11, 18))
    earlier = DATA_SETS.with_columns(day=datetime.date(2026, 11, 17))
    page_text = texts(render(**contents(studies=pl.concat([old, DIVERSITY, earlier]))))
    assert "Random pairs of davidson" in page_text
    assert "older" not in page_text
    assert TITLES["data_sets"] in page_text


def test_names_stay_text(full_page: str) -> None:
    """Hostile names of sources, detectors, raters, groups, models, baselines add no element and no handler."""
    names = HOSTILE[:3]
    spreads = [r for name in names for study in ("data_sets", "diversity") for r in samples.spread(study, name, 0.6)]
    detections = [samples.row("detection", "accuracy", 0.5, LABELS[0], by=name, low=0.4, high=0.6) for name in names]
    parts = {
        "audit": pl.concat(AUDIT[:1].with_columns(subset=pl.lit(name), model=0.9) for name in names),
        "evaluations": pl.concat(EVALUATIONS[:1].with_columns(baseline_name=pl.lit(name)) for name in names),
        "spaces": ([np.eye(3, 2)] * 2, names, (0.1, 0.2)),
        "studies": samples.frame(*spreads, *detections),
    }  # fmt: skip
    html = render(**{**contents(**parts), "model_id": HOSTILE[1], "day": HOSTILE[2]})
    check_names(html, full_page, 4, names)  # audit, baseline, two studies
