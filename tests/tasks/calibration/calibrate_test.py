"""Calibration on comments of the tables and on files: which values are compared, what is stored."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline import left_out, sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.tables import empty
from pipeline.tasks.calibration import calibrate
from tests.support.rows.filled import digest, filled

DAY = sample.DAY
KEY = ["source", "thread_id", "comment_id"]


@pytest.fixture
def judged(scored: Path) -> pl.DataFrame:
    """The sample with scores, and 200 comments judged by `gpt` from their score with some noise."""
    return write_judgements("gpt:scale", 0.7)


def write_judgements(judge: str, noise: float) -> pl.DataFrame:
    """Judge a random sample on a scale from 0 to 4."""
    comments = warehouse.scan("comments").select(*KEY, "text_hash").collect()
    rows = warehouse.query("select source, day, thread_id, comment_id, implicitness from comments_scored")
    rows = rows.join(comments, on=KEY).sort(KEY).sample(200, seed=1)
    values = rows["implicitness"].to_numpy() * 2 + noise * np.random.default_rng(2).normal(size=200)
    names = {"metric": "implicitness_judged", "model_id": judge, "signature": "implicitness_judged|test"}
    scores = rows.with_columns(
        value=pl.Series(np.clip(np.round(values), 0, 4)), **{k: pl.lit(v) for k, v in names.items()}
    )
    partition = {**warehouse.make_slice(day=DAY), "metric": "implicitness_judged", "model_id": judge}
    warehouse.overwrite("scores", partition, scores.select(empty("scores").columns), "test")
    return scores


def test_a_scorer_is_calibrated_to_a_judge(judged: pl.DataFrame) -> None:
    """All figures go into `studies`, once, with the knots of the map of each language."""
    result = calibrate.compare_sides("scorer", "judge")
    assert result.comparison.measures["n"].to_list() == [200] * 5
    for _ in range(2):
        calibrate.write_study(result, "scorer", "judge", DAY)
    studies = warehouse.scan("studies", pl.col("study") == "calibration").collect()
    assert not studies.select("setting", "metric", "subset", "run").is_duplicated().any()
    rho = studies.filter(pl.col("setting") == '{"a": "scorer", "b": "judge"}', metric="spearman", subset="all")
    assert rho.select("value", "low", "high").row(0) == result.comparison.measures.select(
        "spearman", "low", "high"
    ).row(0)
    assert studies["model_id"].unique().to_list() == [result.model_id]
    for subset, knots in result.comparison.maps.items():
        rows = studies.filter(pl.col("metric").str.starts_with("map_"), subset=subset)
        rows = rows.pivot("metric", index="run", values="value").sort("run")
        assert rows["map_x"].to_list() == pytest.approx([*knots.x], abs=1e-6)
        assert rows["map_y"].to_list() == pytest.approx([*knots.y], abs=1e-6)


def test_scores_are_read_as_a_judge_would(judged: pl.DataFrame) -> None:
    """The newest map of the model that fits the name gives value and interval by language; else it is named."""
    model_id = calibrate.load_side("scorer")["rater"][0]
    with pytest.raises(Missing, match=f"model {model_id[:12]} has no calibration by 'judge'; found none; run "):
        calibrate.load_maps("judge", model_id)
    result = calibrate.compare_sides("scorer", "judge:gpt")
    calibrate.write_study(result, "scorer", "judge:gpt", DAY)
    for name in ("judge", "judge:gpt"):
        maps = calibrate.load_maps(name, model_id)
        assert sorted(maps) == ["all", "en", "zh"]
    with pytest.raises(Missing, match=r"no calibration by 'people'; found judge:gpt; .*: `undertone label import`"):
        calibrate.load_maps("people", model_id)
    with pytest.raises(BadInput, match="'oracle' is no measure; expected scorer, judge, people, grades"):
        calibrate.load_maps("oracle", model_id)
    texts = ["Nice hat, sir.", "今天真冷。", "!", "ん、そうですね。", None]
    scores = pl.DataFrame({"said": texts, "implicitness": [0.9, 1.1, 0.9, 1.0, None]})
    scores = calibrate.add_intervals(scores, "said", maps)
    rows = calibrate.add_intervals(scores, "said", maps).select(calibrate.READINGS).fill_null(np.nan).rows()
    for row, name, value in zip(rows, ("lang en", "lang zh", "all"), (0.9, 1.1, 0.9), strict=False):
        expected = result.comparison.maps[name].predict(np.array(value))
        assert row == pytest.approx([*map(float, expected)], abs=1e-3, nan_ok=True)
    assert np.isnan(rows[0][1:]).all()  # of fewer than ten threads
    assert 0 <= rows[1][1] < rows[1][0] < rows[1][2] <= 4
    assert np.isnan(rows[3:]).all()
    calibrate.write_study(result, "scorer", "judge:llama", DAY)
    with pytest.raises(BadInput, match=f"by 'judge' of {DAY}, found judge:gpt, judge:llama; name one"):
        calibrate.load_maps("judge", model_id)
    with pytest.raises(BadInput, match="column 'low': the interval has a column of this name"):
        calibrate.add_intervals(scores.select("said", "implicitness", "low"), "said", maps)


def test_a_calibration_is_of_some_days_and_judges(judged: pl.DataFrame) -> None:
    """Of several judges one is named, perhaps without its mode; a day without comments has no values."""
    write_judgements("llama:pairwise", 0.1)
    with pytest.raises(Missing, match="there are no values of 'judge:gp'"):
        calibrate.load_side("judge:gp")
    with pytest.raises(BadInput, match="expected one judge, found gpt:scale, llama:pairwise; name it, such as judge"):
        calibrate.compare_sides("scorer", "judge")
    result = calibrate.compare_sides("scorer", "judge:llama", DAY, 2)
    assert result.model_id
    assert calibrate.compare_sides("judge:gpt", "judge:llama").model_id is None
    with pytest.raises(Missing, match="no comment has a value of 'scorer' and of 'judge:gpt' on 1 days until 2026-"):
        calibrate.compare_sides("scorer", "judge:gpt", "2026-01-01")


def test_what_cannot_be_compared_is_named(scored: Path) -> None:
    """One measure twice, an unknown one, one without values, labels that are words."""
    write_labels({"r1": ["Joy"]}, "emotion")
    for b, error, message in (
        ("scorer", BadInput, "expected two measures, found 'scorer' twice"),
        ("oracle", BadInput, "'oracle' is no measure; expected scorer, judge, people, grades"),
        ("grades", Missing, "there are no values of 'grades'; `undertone commenting ratings`"),
        ("people:emotion", BadInput, "labels of 'emotion' are no numbers but Joy"),
    ):
        with pytest.raises(error, match=message):
            calibrate.compare_sides("scorer", b)


def write_labels(by_rater: dict[str, list[Any]], field: str = "subtext") -> pl.DataFrame:
    """Label the first comments of the sample, one task each; null is no label."""
    comments = warehouse.scan("comments").select(*KEY).collect().sort(KEY)[: max(map(len, by_rater.values()))]
    tasks = [row | {"task_id": digest(n, 32), "row_id": digest(n, 16)} for n, row in enumerate(comments.to_dicts())]
    labels = [
        {"task_id": tasks[n]["task_id"], "rater_id": rater, "field": field, "value": str(value)}
        for rater, values in by_rater.items()
        for n, value in enumerate(values)
        if value is not None
    ]
    project = warehouse.make_slice(project="csd")
    warehouse.overwrite("label_tasks", project, filled("label_tasks", *tasks), "test")
    warehouse.overwrite("labels", project, filled("labels", *labels), "test")
    return comments


def test_people_are_averaged_and_tested(scored: Path) -> None:
    """The mean of people, not of simulated raters, is compared; a random measure may not replace one of them."""
    rng = np.random.default_rng(1)
    truth = rng.integers(-1, 2, 60)
    by_rater = {
        name: [int(rng.integers(-1, 2)) if rng.random() < 0.1 else int(value) for value in truth]
        for name in ("r1", "r2")
    }
    by_rater["r3"] = [int(truth[0]), *[None] * 59]  # shares one text: not tested
    comments = write_labels(by_rater)
    labels = warehouse.scan("labels").collect()
    made_up = labels.unique("task_id").with_columns(rater_id=pl.lit("simulated_1"), tool=pl.lit("simulated"))
    warehouse.overwrite("labels", warehouse.make_slice(project="csd"), pl.concat([labels, made_up]), "test")
    ratings = calibrate.load_side("people")
    assert ratings.height == 121
    means = calibrate.average(ratings, "b").join(comments.with_row_index(), on=KEY).sort("index")["b"]
    assert means[1:].to_list() == np.mean([by_rater["r1"][1:], by_rater["r2"][1:]], axis=0).tolist()
    result = calibrate.compare_sides("scorer", "people")
    assert result.replacement
    assert not result.replacement.passes
    assert len(result.replacement.n) == 2
    assert "raters without two texts that another one rated: r3; the test leaves them out" in left_out.list_lines()


def test_raters_are_left_out_until_each_shares_two_texts() -> None:
    """The third shares two texts with the fourth and one with the first; the fourth shares only these two."""
    nan = np.nan
    ratings = np.array([[1, 1, nan, nan], [2, 2, nan, nan], [nan, nan, 1, 1], [nan, nan, 2, nan], [nan, 1, 2, nan]])
    result = calibrate._check_replacement(np.arange(5.0), pl.DataFrame(ratings), 0.15)
    assert result
    assert result.n == (2, 2)
