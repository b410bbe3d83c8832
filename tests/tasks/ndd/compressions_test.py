"""Compressions of data sets in the tables and of files, and their measures beside baselines (NDD, section 4)."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput
from pipeline.metrics.ndd import compression as measures
from pipeline.tables import TABLES
from pipeline.tasks.ndd import compressions, masked_lm, systems
from pipeline.tasks.ndd.compressions import Job
from tests.support.rows.study_rows import KEY, select

DAY = sample.DAY
MODEL_SYSTEMS = ("ndd", "fast_ndd", "ppl_deleter")
BASELINES = ("unedited", "head", "tail", "random")


def compress(system: str, path: Path, **options: object) -> pl.DataFrame:
    """Compress a file by a system."""
    return compressions.compress_items(compressions.load_items(str(path)), system, Job(day=DAY, **options))  # type: ignore[arg-type]


def publish(path: Path, *names: str, **options: str) -> int:
    """Stage and publish what some systems make of a file."""
    job = Job(day=DAY, data=str(path), **options)  # type: ignore[arg-type]
    return compressions.publish([compressions.stage(name, job) for name in names], job.source, DAY)


def load_compressions() -> pl.DataFrame:
    """Load all rows, sorted."""
    return warehouse.scan("compressions").sort("item_id", "system").collect()


def test_masks_of_colloquial_are_spoken(tmp_path: Path) -> None:
    """Masks of places and numbers are replaced by what people say, in items and compressions (NDD-28)."""
    words = [["你们", "[地址]", "有", "店", "吗"], ["打", "[电话号码]", "吧"], ["嗯", "好"]]
    labels = [["0", "1", "1", "1", "0"], ["1", "1", "0"], ["0", "1"]]
    sentences = zip(words, labels, strict=True)
    lines = (f"{number}\t{sentence}\n\t{tags}\n" for number, (sentence, tags) in enumerate(sentences))
    (tmp_path / "alldata-3.txt").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "shuffled_idx-3.txt").write_text("[2, 0, 1]\n", encoding="utf-8")
    rows = compressions.load_items(str(tmp_path), "colloquial", "test")
    assert rows["words"].to_list() == [["嗯", "好"], ["你们", "某地", "有", "店", "吗"], ["打", "电话", "吧"]]
    predictions = compressions.compress_items(rows, "fast_ndd", Job(day=DAY, source="colloquial"))
    assert predictions["words"].to_list() == rows["words"].to_list()


def test_systems_that_need_states_are_skipped(data_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Gold and the baselines always run; without states, systems that compare them are skipped and logged."""
    with caplog.at_level("INFO", logger="pipeline"):
        assert compressions.list_systems([*systems.SYSTEMS]) == [
            "gold", *BASELINES, "ndd", "ndd_sc", "fast_ndd", "fast_ndd_sc", "ppl_deleter", "ppl_deleter_sc",
        ]  # fmt: skip
    assert "cosine, cosine_sc, bertscore, bertscore_sc" in caplog.text
    assert compress("cosine", data_file).height == 0
    with pytest.raises(BadInput, match="no system 'gold'; there are ndd"):
        compressions.list_systems(["gold"])


@pytest.mark.parametrize("system", ["gold", *BASELINES, *MODEL_SYSTEMS, "fast_ndd_sc"])
def test_rows_fit_the_contract(data_file: Path, system: str) -> None:
    """A row a sentence; unless another ratio is given, each language keeps as large a share as people did."""
    rows = compress(system, data_file)
    TABLES["compressions"].schema.validate(rows)
    assert set(rows["system"]) == {system}
    items = compressions.load_items(str(data_file))
    items = items.join(rows.select("item_id", "rounds"), on="item_id", maintain_order="left")
    if system == "gold":
        assert items.select(pl.col("rounds").list.eval(pl.element() == 0))["rounds"].equals(items["kept"])
    if system in MODEL_SYSTEMS:
        for (lang,), part in items.group_by("lang"):
            gold = sum(map(sum, part["kept"])) / sum(map(len, part["kept"]))
            expected = [max(1, int(round(gold, 4) * len(words) + 0.5)) for words in part["words"]]
            assert part["rounds"].list.count_matches(0).to_list() == expected, lang
    expected_signature = system if system in ("gold", *BASELINES) else f"compression:{system}"
    assert {signature.split("|")[0] for signature in rows["signature"]} == {expected_signature}


def test_sentences_without_a_tree_are_left_out_of_subtrees_alone(data_file: Path) -> None:
    """The sample uses its own treebank; another source needs a file with trees."""
    expected = compressions.load_items(str(data_file))["item_id"].to_list()[:5]
    rows = compress("ndd_sc", data_file)
    assert rows["item_id"].to_list() == expected
    heads = systems.find_heads(rows["words"].to_list(), "en", sample.TREES)
    for tree, rounds in zip(heads, rows["rounds"], strict=True):
        assert tree is not None
        assert all(head < 0 or rounds[head] == 0 for head, dropped in zip(tree, rounds, strict=True) if not dropped)
    assert compress("ndd_sc", data_file, source="other").height == 0
    syntax = str(sample.TREES)
    assert compress("ndd_sc", data_file, source="other", syntax=syntax)["item_id"].to_list() == expected
    assert compress("ndd", data_file, source="other").height == 10


def test_systems_and_baselines_keep_as_many_words(tmp_path: Path) -> None:
    """Half of five words is two for both; a given ratio is also that of the baselines, and in their signature."""
    items = [{"words": [*"abcde"], "kept": [place < 2 + number % 2 for place in range(5)]} for number in range(8)]
    path = tmp_path / "five.jsonl"
    path.write_text("".join(f"{json.dumps(item)}\n" for item in items), encoding="utf-8")
    for ratio, expected in ((None, 0.4), (0.2, 0.2)):
        for system in ("fast_ndd", "head", "tail", "random"):
            rows = compress(system, path, ratio=ratio)
            assert set(rows["ratio"]) == {expected}
            assert ("|ratio:0.2" in rows["signature"][0]) == (ratio == 0.2)


def test_a_ratio_of_ones_own(data_file: Path) -> None:
    """A ratio applies to each language and is in the signature; progress counts sentences."""
    progress: list[int] = []
    items = compressions.load_items(str(data_file))
    rows = compressions.compress_items(items, "fast_ndd", Job(day=DAY, ratio=1), progress.append)
    assert rows["ratio"].to_list() == [1.0] * 10
    assert all("|ratio:1|" in signature for signature in rows["signature"])
    assert sum(progress) == 10
    with pytest.raises(BadInput, match="ratio should be above 0"):
        compress("fast_ndd", data_file, ratio=0)


@pytest.mark.usefixtures("tables")
def test_publishing_by_another_model_replaces_rows(data_file: Path, count_folder: str) -> None:
    """Rows by another model replace a system's rows; rows of sentences that no longer exist are removed."""
    publish(data_file, "gold", "fast_ndd", "head")
    publish(data_file, "gold", "fast_ndd", ref=count_folder)
    rows = load_compressions()
    assert rows.height == 30
    model = masked_lm.load_model(count_folder).model.signature
    assert all(f"|{model}|" in signature for signature in rows.filter(system="fast_ndd")["signature"])
    fewer = data_file.with_name("fewer.jsonl")
    first, second, *_ = map(json.loads, data_file.read_text(encoding="utf-8").splitlines())
    second |= {"words": [*second["words"], "!"], "kept": [*second["kept"], False]}
    fewer.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n", encoding="utf-8")
    publish(fewer, "gold")
    expected = {("gold", second["item_id"]), *((name, first["item_id"]) for name in ("gold", "fast_ndd", "head"))}
    assert {*load_compressions().select("system", "item_id").iter_rows()} == expected


@pytest.mark.usefixtures("tables")
def test_measures_are_the_metrics_own(data_file: Path) -> None:
    """Each system is measured by language as by `metrics.ndd.compression`, on the sentences that it compressed.

    It is compared with the best in F1 of the baselines and PPL Deleter, without copying and the system itself.
    """
    publish(data_file, "gold", *BASELINES, *MODEL_SYSTEMS, "fast_ndd_sc")
    rows = compressions.measure("sample", DAY)
    TABLES["studies"].schema.validate(rows)
    items = compressions.load_items(str(data_file))
    for system, lang, count in (("fast_ndd", "en", 6), ("head", "zh", 4), ("fast_ndd_sc", "en", 5)):
        predictions = compress(system, data_file).filter(lang=lang).select("item_id", "rounds")
        part = items.join(predictions, on="item_id", maintain_order="left").sort("item_id")
        predicted = [[number == 0 for number in rounds] for rounds in part["rounds"]]
        expected = measures.evaluate(predicted, part).with_columns(pl.col("value", "low", "high").round(6))
        system_rows = select(rows.filter(subset=f"sample:{lang}"), system=system)
        is_measure = ~pl.col("metric").str.contains("kept_") & ~pl.col("setting").str.contains("against")
        actual = system_rows.filter(is_measure).select("metric", "value", "low", "high", n="row_count")
        assert actual.sort("metric").equals(expected.select(actual.columns).sort("metric")), system
        assert set(actual["n"]) == {count}
    assert not select(rows.filter(subset="sample:zh"), system="fast_ndd_sc").height
    common = rows.filter(subset="sample:en:common")  # of the 5 that have a tree, all systems
    assert set(common["row_count"]) == {5}
    assert {json.loads(text)["system"] for text in common["setting"]} == {*BASELINES, *MODEL_SYSTEMS, "fast_ndd_sc"}
    f1 = rows.filter(metric="f1_macro").sort("subset")  # the main subset first
    assert select(f1, system="fast_ndd_sc")["value"].n_unique() == 1
    assert not rows["subset"].str.contains("zh:common").any()
    rows = rows.filter(subset="sample:en")
    f1 = rows.filter(metric="f1_macro")
    scored = {name: select(f1, system=name)["value"].item() for name in (*BASELINES, *MODEL_SYSTEMS)}
    best = max(("head", "tail", "random", "ppl_deleter"), key=scored.__getitem__)
    compared = {
        json.loads(text)["system"] for text in rows.filter(pl.col("setting").str.contains("against"))["setting"]
    }
    assert compared == {*MODEL_SYSTEMS, "fast_ndd_sc"}
    for name in {*MODEL_SYSTEMS} - {best}:
        system_rows = select(rows, system=name, against=best).rows_by_key("metric", named=True, unique=True)
        difference, p = system_rows["f1_macro_difference"], system_rows["f1_macro_p"]
        assert difference["value"] == pytest.approx(scored[name] - scored[best], abs=1e-5)
        assert difference["low"] <= difference["value"] <= difference["high"]
        assert 0 < p["value"] <= 1
        assert (p["low"], p["high"]) == (None, None)


@pytest.mark.usefixtures("tables")
def test_positions_sum_up(data_file: Path) -> None:
    """Over the tenths of a sentence, the counts add up to all words and to those that stay (figure 6).

    Without rivals there is no significance; a day without compressions has no rows.
    """
    publish(data_file, "gold", "unedited", "head")
    rows = compressions.measure("sample", DAY)
    assert not rows["setting"].str.contains("against").any()
    assert compressions.measure("sample", "2026-11-20").height == 0
    for system in ("gold", "head"):
        rounds = compress(system, data_file).filter(lang="en")["rounds"]
        positions = select(rows.filter(pl.col("metric").str.starts_with("kept_"), subset="sample:en"), system=system)
        assert positions["metric"].n_unique() == positions.height == 10
        assert positions["row_count"].sum() == sum(map(len, rounds))
        kept_count = sum([*sentence_rounds].count(0) for sentence_rounds in rounds)
        assert (positions["value"] * positions["row_count"]).sum() == pytest.approx(kept_count, abs=1e-3)
    shares = positions.sort("metric")["value"]
    assert (shares[0], shares[-1]) == (0, 1)  # head drops the first words


@pytest.mark.usefixtures("tables")
def test_measures_and_thresholds_have_their_own_subsets(data_file: Path) -> None:
    """Writing twice replaces the rows; table 6 has its own subset, which `load_measures` leaves out."""
    publish(data_file, "gold", "head", "fast_ndd")
    for _ in range(2):
        compressions.publish_measures("sample", DAY)
    overview = compressions.load_measures("sample", DAY)
    rows = compressions.try_thresholds(compressions.load_items(str(data_file)), Job(day=DAY))
    compressions.publish_thresholds(rows, "sample", DAY)
    all_rows = warehouse.scan("studies").collect()
    assert not all_rows.select(KEY).is_duplicated().any()
    assert all_rows.filter(pl.col("subset").str.ends_with(":thresholds")).height == rows.height
    assert compressions.load_measures("sample", DAY).equals(overview)
    assert overview.columns == ["metric", "value", "low", "high", "by", "lang", "n"]
    assert set(overview["by"]) == {"gold", "head", "fast_ndd"}
    assert set(overview["lang"]) == {"en", "zh"}
    numbers = {(setting["threshold"], setting["longest"]) for setting in map(json.loads, rows["setting"])}
    assert numbers == {*compressions.GRID}
    english = rows.filter(metric="ratio", subset="sample:en:thresholds")
    low, high = (select(english, threshold=n, longest=5)["value"].item() for n in (0.25, 4.0))
    assert high <= low


ROWS = [
    {"words": ["the", "old", "bus", "is", "late"], "kept": [True, False, True, True, True], "split": "test"},
    {"words": ["we", "really", "wait"], "kept": [True, False, True], "split": "train"},
]


def write_rows(path: Path, rows: list[dict[str, object]]) -> Path:
    """Write rows, one a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_compressions_are_measured_beside_baselines(tmp_path: Path) -> None:
    """Keeping what people keep has F1 1 and no difference in ratio; people's own and the baselines follow."""
    data = write_rows(tmp_path / "data.jsonl", ROWS)
    rows = compressions.read_data_set(data).rows
    numbers = compressions.measure_predictions(rows, compressions.read_predictions(data, rows))
    values = {(row["by"], row["metric"]): row["value"] for row in numbers.iter_rows(named=True)}
    assert values["answers", "f1_macro"] == 1
    assert values["answers", "ratio_delta"] == 0
    assert values["unedited", "ratio"] == 1
    assert (values["gold", "length"], values["unedited", "length"]) == (3, 4)  # words: 4 and 2; 5 and 3
    assert values["gold", "ratio_macro"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert values["unedited", "f1_macro"] == pytest.approx((8 / 9 + 4 / 5) / 2)
    names = ["answers", "gold", "unedited", "head", "tail", "random"]
    summary = compressions.summarize_measures(numbers)
    assert summary["by"].to_list() == names
    assert summary.columns[:3] == ["by", "f1_macro", "ratio"]  # no F1 without its CR, and copying next to it (NDD-26)
    assert compressions.read_data_set(data, split="test").rows.height == 1


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Another format, another part, other sentences and too few of them are named."""
    data = write_rows(tmp_path / "data.jsonl", ROWS)
    rows = compressions.read_data_set(data).rows
    with pytest.raises(BadInput, match="no source 'bnc'; there are own, google, broadcast, colloquial"):
        compressions.read_data_set(data, "bnc")
    with pytest.raises(BadInput, match="no rows of the part 'dev'; there are test, train"):
        compressions.read_data_set(data, split="dev")
    short = write_rows(tmp_path / "few.jsonl", ROWS[:1])
    missing = r"expected a compression of data.jsonl:2 after data.jsonl:1, in the words 'we really wait'; found none"
    with pytest.raises(BadInput, match=f"few.jsonl: {missing}$"):
        compressions.read_predictions(short, rows)
    different = write_rows(tmp_path / "other.jsonl", [ROWS[0], {**ROWS[1], "words": ["we", "never", "wait"]}])
    with pytest.raises(BadInput, match=f"{missing}$"):
        compressions.read_predictions(different, rows)
    with pytest.raises(BadInput, match=f"{missing}$"):
        compressions.read_predictions(write_rows(tmp_path / "order.jsonl", ROWS[::-1]), rows)
    unusable = write_rows(tmp_path / "none.jsonl", [ROWS[0], {**ROWS[1], "kept": [False, False, False]}])
    with pytest.raises(BadInput, match=f"{missing}; none.jsonl:2: nothing_kept$"):
        compressions.read_predictions(unusable, rows)
