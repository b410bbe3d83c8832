"""Figures of studies and models: SVG that says the numbers and draws whatever is there, the same rows, same bytes."""

import re
from collections.abc import Callable
from itertools import chain

import numpy as np
import polars as pl
import pytest

from pipeline.metrics.impscore.detection import LABELS
from pipeline.papers.impscore import TABLE_2
from pipeline.report.figures import pick_look, wrap_name
from pipeline.report.impscore import model_figures, study_figures
from pipeline.report.impscore.study_rows import average_runs
from tests.report.impscore import samples
from tests.report.impscore.samples import ABLATION, AUDIT, DATA_SETS, DETECTION, DIVERSITY, SENSITIVITY, frame, row
from tests.support.pages import elements, words


def test_over_runs_by_hand() -> None:
    """Three runs are one row: mean, s.d. over n - 1, how many; one run has no s.d."""
    setting = {"implicitness": "cosine", "pragmatics": "cosine", "space": "p2s"}
    values = enumerate((0.9, 0.8, 0.7))
    rows = frame(*(row("ablation", "implicitness_accuracy", value, run=i, **setting) for i, value in values))
    (average,) = average_runs(rows, "ablation").to_dicts()
    assert (average["value"], average["sd"], average["run_count"]) == pytest.approx((0.8, 0.1, 3))
    assert {name: average[name] for name in setting} == setting
    assert average_runs(rows.head(1), "ablation")["sd"].to_list() == [None]


def test_settings_may_be_whole_numbers() -> None:
    """A setting whose JSON says 1 is the one that says 1.0."""
    rows = frame(
        row("sensitivity", "m", 0.5, gamma_implicitness=1, gamma_pragmatics=2, alpha=1),
        row("sensitivity", "m", 0.7, run=1, gamma_implicitness=1.0, gamma_pragmatics=2.0, alpha=1.0),
    )
    assert average_runs(rows, "sensitivity").select("alpha", "value", "run_count").rows() == [(1.0, 0.6, 2)]


def test_ablation_says_both_accuracies_and_the_papers() -> None:
    """Every cell has mean ± s.d. of both accuracies, the paper's numbers beside; cells without runs a dash."""
    texts = words(study_figures.draw_ablation(ABLATION))
    for accuracy in chain(*TABLE_2.values()):
        assert {f"{accuracy:.3f} ± 0.010", f"{accuracy:.3f}"} <= set(texts)
    assert "–" not in texts
    lone = words(study_figures.draw_ablation(ABLATION.head(1)))
    assert lone.count("–") == 23
    assert "0.943" in lone  # one run has no s.d.


def count_frames(svg: str) -> int:
    return len(re.findall(r"fill: none; stroke: #c1666b; stroke-width: 1.8", svg))


def test_ablation_frames_the_best() -> None:
    """The best implicitness accuracies are framed, both where two are equal in print, as in the paper."""
    assert count_frames(study_figures.draw_ablation(ABLATION)) == 2
    is_first = pl.col("setting").str.contains('"cosine", "pragmatics": "euclidean", "space": "p2s"', literal=True)
    better = pl.when(is_first).then(pl.col("value") + 0.001).otherwise("value")
    assert count_frames(study_figures.draw_ablation(ABLATION.with_columns(value=better))) == 1


def test_sensitivity_names_the_best_of_each_panel() -> None:
    """One panel an α, each with its best mean and where it is."""
    texts = words(study_figures.draw_sensitivity(SENSITIVITY))
    for alpha, best in (("0.5", "0.901"), ("1", "0.901"), ("2", "0.900")):
        (title,) = (text for text in texts if text.startswith(f"α = {alpha}: best {best[:4]}"))
        assert title.endswith("at γ1 = 0.5, γ2 = 0.5")


SENSITIVITY_PARTS = {
    "one setting, one run": SENSITIVITY.head(1),
    "a grid with holes": SENSITIVITY.head(40),
    "nothing differs": SENSITIVITY.with_columns(value=pl.lit(0.9)),
}


@pytest.mark.parametrize("name", SENSITIVITY_PARTS)
def test_any_grid_draws(name: str) -> None:
    """A grid that is not full, or has one value, is drawn as points without a warning."""
    assert study_figures.draw_sensitivity(SENSITIVITY_PARTS[name]).startswith("<svg")


def test_the_surface_meets_what_was_measured() -> None:
    """The interpolated surface has the measured values at its corners and leaves their range nowhere."""
    x, y = map(np.ravel, np.meshgrid([0.1, 0.5, 1.5], [0.5, 2.0]))
    z = np.array([1.0, 3.0, 2.0, 5.0, 0.0, 4.0])
    order = np.array([3, 0, 5, 1, 4, 2])
    surface = study_figures._interpolate(x[order], y[order], z[order])
    assert surface is not None
    assert surface[2][[0, 0, -1, -1], [0, -1, 0, -1]] == pytest.approx([1, 2, 5, 4])
    assert surface[2].min() >= 0
    assert surface[2].max() <= 5
    assert study_figures._interpolate(x[:5], y[:5], z[:5]) is None


def test_data_sets_are_sorted_and_implicit_parts_stand_beside() -> None:
    """The most implicit, or most diverse, comes first, each with its n, the implicit part's under its own data set."""
    texts = words(study_figures.draw_data_sets(DATA_SETS))
    assert [text for text in texts if text in ("toxigen", "dghsd")] == ["dghsd", "toxigen"]
    assert [text for text in texts if text.startswith("n = ")] == ["n = 22,175", "n = 3,439", "n = 2,000"]
    alone = words(study_figures.draw_data_sets(DATA_SETS.filter(pl.col("subset") == "dghsd:implicit")))
    assert "dghsd" in alone
    assert "n = 3,439" in alone
    texts = words(study_figures.draw_diversity(DIVERSITY))
    assert [text for text in texts if text in ("toxigen", "davidson")] == ["toxigen", "davidson"]


def test_detection_counts_below_each_bin() -> None:
    """All eight bins are named; below each stands n with the effective n of each detector, 0 where it has no texts."""
    texts = words(study_figures.draw_detection(DETECTION))
    assert {label.replace("-", "–") for label in LABELS} <= set(texts)
    assert " ".join(texts).count("1,003 (53)") == 2
    assert " ".join(texts).count("1,007 (57)") == 1
    assert texts.count("0") == 1
    assert {"● gpt", "■ llama"} <= set(texts)


def test_detection_on_several_sources_is_not_mixed() -> None:
    """One detector on two data sets is two lines, each with its own numbers; empty bins have none."""
    rows = frame(
        row("detection", "accuracy", 0.9, LABELS[0], by="gpt", source="toxigen", row_count=10),
        row("detection", "accuracy", 0.1, LABELS[0], by="gpt", source="dghsd", row_count=20),
        row("detection", "accuracy", None, LABELS[1], by="gpt", source="dghsd", row_count=0),
    )
    lines = [("gpt on dghsd", 0.1, 20), ("gpt on dghsd", None, 0), ("gpt on toxigen", 0.9, 10)]
    assert average_runs(rows, "detection").select("by", "value", "row_count").rows() == lines
    assert {"● gpt on dghsd", "■ gpt on toxigen"} <= set(words(study_figures.draw_detection(rows)))
    assert average_runs(rows[1:], "detection")["by"].unique().to_list() == ["gpt"]


def test_violins_are_of_one_part() -> None:
    """Means are those of the split that is asked for, and the number of triples is said."""
    texts = words(model_figures.draw_violins(samples.TRIPLES))
    assert {"1.250", "0.450", "0.400", "0.250", "1.500"} <= set(texts)
    assert "2 triples of the test split" in " ".join(texts)
    assert "1 triples of the train split" in " ".join(words(model_figures.draw_violins(samples.TRIPLES, "train")))


def test_audit_with_and_without_a_model() -> None:
    """Baselines and sources are named with their n; the model is in the legend only where there is one."""
    texts = words(model_figures.draw_audit(AUDIT))
    assert {"length", "words", "all", "esnli", "n = 300", "n = 120"} <= set(texts)
    assert "the model" not in texts
    compared = AUDIT.with_columns(model=pl.Series([0.95, 0.95, None, None]))
    assert "the model" in words(model_figures.draw_audit(compared))
    assert "the model" not in words(model_figures.draw_audit(compared.with_columns(model=pl.lit(None, pl.Float64))))


def test_spaces_name_groups_where_they_are_few() -> None:
    """Two panels with their silhouettes; twelve groups have a legend, eighty are counted."""
    points = [np.arange(24.0).reshape(12, 2), np.ones((12, 2))]
    titles, silhouettes = ("pragmatic", "semantic"), (0.5, -0.25)
    few = words(model_figures.draw_spaces(points, ["rent", "dog"] * 6, titles, silhouettes))
    assert {"rent", "dog", "pragmatic", "semantic", "silhouette 0.500", "silhouette −0.250"} <= set(few)
    many = [np.arange(320.0).reshape(160, 2)] * 2
    texts = words(model_figures.draw_spaces(many, [f"g{i // 2}" for i in range(160)], titles, silhouettes))
    assert "g1" not in texts
    assert any(text.startswith("80 groups") for text in texts)


@pytest.mark.parametrize("count", [1, 6, 14])
def test_matrix_says_every_number(count: int) -> None:
    """Every pair of raters has its number, whatever their count; a rounding below zero is zero."""
    values = np.full((count, count), 0.33)
    np.fill_diagonal(values, 1)
    values[0, -1] = -0.001 if count > 1 else 1
    texts = words(model_figures.draw_matrix([f"rater {i}" for i in range(count)], values, "Kendall τ"))
    assert texts.count("1.00") == count
    assert texts.count("0.33") == max(count * count - count - 1, 0)
    assert "-0.00" not in texts
    assert "Kendall τ" in texts


HOSTILE = ["--><script>alert(1)</script>", "$\\frac{$", "_hidden", "微博评论", "a" * 300, "x_" * 80]


FIGURES_OF_NAMES: dict[str, Callable[[], str]] = {
    "detection": lambda: study_figures.draw_detection(
        frame(*(row("detection", "accuracy", 0.5, LABELS[0], by=n, low=0.4, high=0.6) for n in HOSTILE))
    ),
    "matrix": lambda: model_figures.draw_matrix(HOSTILE, np.eye(len(HOSTILE)), HOSTILE[1]),
    "spaces": lambda: model_figures.draw_spaces([np.eye(len(HOSTILE), 2)], HOSTILE, HOSTILE[:1], [0.1]),
}


@pytest.mark.parametrize("figure", FIGURES_OF_NAMES)
def test_names_are_drawn_and_nothing_else(figure: str) -> None:
    """Markup, mathematics, Chinese and very long names are drawn as they are, without a warning or an element."""
    svg = FIGURES_OF_NAMES[figure]()
    drawing = {"svg", "defs", "style", "g", "path", "use", "clipPath", "rect"}
    assert elements(svg) <= drawing | {"metadata", "RDF", "Work", "type", "format"}
    assert "<script" not in svg
    assert {"$\\frac{$", "_hidden", "微博评论"} <= {text.lstrip("●■◆▲▼✚ ") for text in words(svg)}


def test_wrapped_names() -> None:
    """Names break after underscores, slashes and hyphens and lose nothing, until they are too long for three lines."""
    assert wrap_name("latent_hatred") == "latent_hatred"
    long = "meta-llama/Llama-3.1-8B-Instruct"
    assert wrap_name(long).replace("\n", "") == long
    assert max(map(len, wrap_name(long).split("\n"))) <= 22
    assert wrap_name("x" * 300).count("\n") == 2
    assert wrap_name("x" * 300).endswith("…")


def test_looks_differ() -> None:
    """36 things in a figure have 36 looks."""
    assert len({pick_look(i) for i in range(36)}) == 36
