"""The parts of the page of studies that come from the frame `studies` (ImpScore, sections 5.3 and 7)."""

from collections.abc import Callable

import polars as pl

from pipeline.papers.impscore import SPACES, TABLE_2
from pipeline.report.impscore import study_figures
from pipeline.report.impscore.study_rows import IMPLICIT, by_metric, over_runs
from pipeline.report.sections import Section, count, number

_SPREAD = ("mean", "sd", "q05", "q25", "q50", "q75", "q95")
SPREAD_NAMES = ("mean", "s.d.", "5 %", "25 %", "median", "75 %", "95 %")


def _ablation(studies: pl.DataFrame) -> Section:
    found = over_runs(studies, "ablation")
    keys = ["implicitness", "pragmatics", "space"]
    table = found.pivot("metric", index=[*keys, "run_count"], values=["value", "sd"])
    means = found.filter(pl.col("metric") == "implicitness_accuracy")
    cosine, euclidean = (means.filter(pl.col("implicitness") == kind)["value"] for kind in ("cosine", "euclidean"))
    said = (
        f"With the cosine for I no variant falls below {number(cosine.min())}, with the Euclidean distance none rises "
        f"above {number(euclidean.max())}"
        if len(cosine) and len(euclidean)
        else "The least of the variants with the cosine for I is to be held against the best Euclidean one"
    )
    return Section(
        "Designs of the model",
        f"{said}; in the paper 0.946 and 0.929, and little depends on the rest (section 5.3, table 2).",
        study_figures.ablation(studies),
        ("I", "ΔP", "space", "implicitness accuracy", "s.d.", "pragmatics accuracy", "s.d.", "runs", "paper"),
        [[row["implicitness"], row["pragmatics"], SPACES.get(row["space"], row["space"]),
          *(number(row.get(f"{kind}_{metric}_accuracy")) for metric in keys[:2] for kind in ("value", "sd")),
          str(row["run_count"]),
          " / ".join(map(number, TABLE_2.get(tuple(row[key] for key in keys), ())))]
         for row in table.iter_rows(named=True)],
        texts=3,
    )  # fmt: skip


def _sensitivity(studies: pl.DataFrame) -> Section:
    found = over_runs(studies, "sensitivity").filter(pl.col("metric") == "implicitness_accuracy").sort("value")
    low, best = found.row(0, named=True), found.row(-1, named=True)
    rows = []
    for part in found.sort("alpha", "value").partition_by("alpha", maintain_order=True):
        top = part.row(-1, named=True)
        rows.append(
            [f"{top['alpha']:g}", count(part.height), str(part["run_count"].max()), number(part["value"][0]),
             number(top["value"]), f"{top['gamma_implicitness']:g}", f"{top['gamma_pragmatics']:g}"]
        )  # fmt: skip
    return Section(
        "Margins and weight of the loss",
        f"Mean implicitness accuracy runs from {number(low['value'])} to {number(best['value'])}, best at "
        f"γ1 = {best['gamma_implicitness']:g}, γ2 = {best['gamma_pragmatics']:g}, α = {best['alpha']:g}; the paper "
        "found γ1 = 0.5 best and little change with γ2 and α (section 5.3, figures 4 and 10).",
        study_figures.sensitivity(studies),
        ("α", "settings", "runs each", "lowest", "best", "at γ1", "at γ2"),
        rows,
        texts=0,
    )


def _spread(found: pl.DataFrame) -> list[list[str]]:
    return [
        [row["subset"].removesuffix(IMPLICIT), "implicit" if row["subset"].endswith(IMPLICIT) else "all",
         *(number(row[metric]) for metric in _SPREAD), count(row["row_count"])]
        for row in found.iter_rows(named=True)
    ]  # fmt: skip


def _data_sets(studies: pl.DataFrame) -> Section:
    found = by_metric(studies, "data_sets")
    whole = found.sort("mean", descending=True).filter(~pl.col("subset").str.ends_with(IMPLICIT))
    ends = {"most": whole.row(0, named=True), "least": whole.row(-1, named=True)} if whole.height > 1 else {}
    said = ", ".join(f"{end['subset']} is the {how} implicit ({number(end['mean'])})" for how, end in ends.items())
    return Section(
        "How implicit data sets are",
        f"{said or 'Means and spread of the scores'}; in the paper Adversarial is the highest of six, Davidson very "
        "low, and implicit parts lie above their wholes (section 7.1, figures 5 and 14).",
        study_figures.data_sets(studies),
        ("data set", "part", *SPREAD_NAMES, "sentences"),
        _spread(found),
        texts=2,
    )


def _diversity(studies: pl.DataFrame) -> Section:
    found = by_metric(studies, "diversity").sort("q50", "subset")
    least = found.row(0, named=True)
    return Section(
        "How much data sets differ within",
        f"Random pairs lie nearest in {least['subset']}, at a median ΔP of {number(least['q50'])}; in the paper in "
        "Davidson (section 7.1, figure 6).",
        study_figures.diversity(studies),
        ("data set", "part", *SPREAD_NAMES, "pairs"),
        _spread(found),
        texts=2,
    )


def _detection(studies: pl.DataFrame) -> Section:
    found = over_runs(studies, "detection").filter(pl.col("metric") == "accuracy")
    said = [
        f"{part['by'][0]} from {number(part['value'][0])} to {number(part['value'][-1])}"
        for part in found.drop_nulls("value").partition_by("by", maintain_order=True)
    ]
    return Section(
        "Who notices what is meant",
        f"From the least to the most implicit bin with texts accuracy goes, for {'; for '.join(said)}; in the paper it "
        "falls as implicitness rises (section 7.2, figures 7 and 16).",
        study_figures.detection(studies),
        ("detector", "implicitness", "accuracy", "95 % from", "to", "texts", "near duplicates once"),
        [[row["by"], row["subset"].replace("-", "–"), *(number(row[key]) for key in ("value", "low", "high")),
          *(count(row[key]) for key in ("row_count", "effective_count"))]
         for row in found.iter_rows(named=True)],
        texts=2,
    )  # fmt: skip


STUDIES: dict[str, Callable[[pl.DataFrame], Section]] = {
    "ablation": _ablation, "sensitivity": _sensitivity, "data_sets": _data_sets, "diversity": _diversity,
    "detection": _detection,
}  # fmt: skip
