"""Compressions of data sets in the tables, their measures, and the tests of the distance (NDD, sections 3 to 5)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.metrics.ndd import compression as measures
from pipeline.metrics.ndd import pruning
from pipeline.metrics.ndd.predicates import Edit
from pipeline.score.compress.search import Search
from pipeline.slices import parse_day
from pipeline.tables import TABLES
from pipeline.tasks.ndd import compressions, distance, masked_lm, systems
from pipeline.text import trees

DAY = sample.DAY
MODEL_SYSTEMS = ("ndd", "fast_ndd", "ppl_deleter")
BASELINES = ("unedited", "head", "tail", "random")
STATES = ("late", "cold", "shut", "new")
KEY = list(TABLES["studies"].key)


@pytest.fixture(scope="module")
def data_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six English sentences of the sample, all but one with trees, and four Chinese ones."""
    lines = sample.COMPRESSIONS.read_text(encoding="utf-8").splitlines()
    english = [line for line in lines if '"lang": "en"' in line]
    bare = {"item_id": "bare", "words": ["Nobody", "saw", "the", "bus", "."], "kept": [1, 1, 0, 1, 1], "lang": "en"}
    path = tmp_path_factory.mktemp("few") / "few.jsonl"
    path.write_text("\n".join([*english[:5], json.dumps(bare), *lines[-4:]]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def count_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Another model of counts, of six sentences, as a folder."""
    folder = tmp_path_factory.mktemp("counts") / "model"
    masked_lm.count_file([tree.text for tree in trees.read(sample.TREES)][:6], folder)
    return str(folder)


@pytest.fixture(scope="module")
def treebank() -> list[trees.Tree]:
    """Six sentences of the sample's treebank."""
    return distance.load_treebank(limit=6)


def compress(system: str, path: Path, source: str = "sample", **options: object) -> pl.DataFrame:
    """Compressions of a file by a system."""
    return compressions.compress_items(compressions.load_items(str(path)), system, source, DAY, **options)  # type: ignore[arg-type]


def publish(path: Path, *names: str, ref: str | None = None) -> int:
    """Stage and publish what some systems make of a file."""
    return compressions.publish(
        [compressions.stage(name, "sample", DAY, str(path), ref=ref) for name in names], "sample", DAY
    )


def load_compressions() -> pl.DataFrame:
    """Load all rows, sorted."""
    return warehouse.scan("compressions").sort("item_id", "system").collect()


def load_studies() -> pl.DataFrame:
    """Load all rows, sorted."""
    return warehouse.scan("studies").sort(pl.all()).collect()


def select(rows: pl.DataFrame, **setting: object) -> pl.DataFrame:
    """Select the rows of a study that have these values in their setting."""
    is_match = [setting.items() <= json.loads(text).items() for text in rows["setting"]]
    return rows.filter(pl.Series(is_match, dtype=pl.Boolean))


def is_of_subtrees(heads: Sequence[int], rounds: Sequence[int]) -> bool:
    """Whether all that a round drops side by side is one or more subtrees of what was left before it (NDD-21)."""
    heads_before, rounds_before = [*heads], [*rounds]
    for number in range(1, max(rounds) + 1):
        spans = {(start, end) for start, end in trees.find_subtrees(heads_before).tolist()}
        for start, end in pruning.list_dropped_spans([dropped_in == number for dropped_in in rounds_before]):
            reached = {start}
            for place in range(start, end):
                reached |= {stop for begin, stop in spans if begin == place and place in reached}
            if end not in reached:
                return False
        is_kept = [dropped_in != number for dropped_in in rounds_before]
        heads_before = trees.drop_words(heads_before, is_kept).tolist()
        rounds_before = [dropped_in for dropped_in in rounds_before if dropped_in != number]
    return True


def test_sentences_of_a_file(data_file: Path, tmp_path: Path) -> None:
    """Without a file the sample is read; a file without a usable sentence is refused."""
    assert compressions.load_items().height == 100
    assert compressions.load_items(str(data_file))["lang"].to_list() == ["en"] * 6 + ["zh"] * 4
    none = tmp_path / "none.jsonl"
    none.write_text('{"text": "so", "compressed": "never"}\n', encoding="utf-8")
    with pytest.raises(Missing, match=r"none.jsonl: no sentences to compress"):
        compressions.load_items(str(none))
    with pytest.raises(BadInput, match="no source 'bnc'; there are own, google, broadcast, colloquial"):
        compressions.load_items(str(data_file), "bnc")


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
    predictions = compressions.compress_items(rows, "fast_ndd", "colloquial", DAY)
    assert predictions["words"].to_list() == rows["words"].to_list()
    with pytest.raises(BadInput, match="no rows of the part 'train'; there are test"):
        compressions.load_items(str(tmp_path), "colloquial", "train")


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
    items = compressions.load_items(str(data_file)).join(
        rows.select("item_id", "rounds"), on="item_id", maintain_order="left"
    )
    if system == "gold":
        kept = [[number == 0 for number in sentence_rounds] for sentence_rounds in items["rounds"]]
        assert kept == items["kept"].to_list()
    if system in MODEL_SYSTEMS:
        for (lang,), part in items.group_by("lang"):
            gold = sum(map(sum, part["kept"])) / sum(map(len, part["kept"]))
            expected = [max(1, int(round(gold, 4) * len(words) + 0.5)) for words in part["words"]]
            assert [[*sentence_rounds].count(0) for sentence_rounds in part["rounds"]] == expected, lang
    baseline_signatures = {"gold": {"gold"}, **{name: {name} for name in BASELINES}}
    signatures = {signature.split("|")[0] for signature in rows["signature"]}
    assert signatures == baseline_signatures.get(system, {f"compression:{system}"})


def test_sentences_without_a_tree_are_left_out_of_subtrees_alone(data_file: Path) -> None:
    """The sample uses its own treebank; another source needs a file with trees."""
    with_trees = [tree.words for tree in trees.read(sample.TREES)]
    expected = [name for name, words in compressions.load_items(str(data_file)).select("item_id", "words").iter_rows()
                if tuple(words) in with_trees]  # fmt: skip
    assert len(expected) == 5
    assert compress("ndd_sc", data_file)["item_id"].to_list() == expected
    assert compress("ndd_sc", data_file, "other").height == 0
    assert compress("ndd_sc", data_file, "other", syntax=sample.TREES)["item_id"].to_list() == expected
    assert compress("ndd", data_file, "other").height == 10


def test_a_given_search(data_file: Path) -> None:
    """A given ratio applies to each language and is in the signature; progress counts sentences."""
    progress: list[int] = []
    rows = compress("fast_ndd", data_file, search=Search(ratio=1), on_progress=progress.append)
    assert rows["ratio"].to_list() == [1.0] * 10
    assert all("|ratio:1|" in signature for signature in rows["signature"])
    assert sum(progress) == 10
    assert compressions.stage("fast_ndd", "sample", DAY, str(data_file), ratio=0.2)["rows"] == 10


@pytest.mark.usefixtures("tables")
def test_publishing_again_changes_nothing(data_file: Path) -> None:
    """Publishing the same rows twice gives the same table; rows of other systems stay."""
    names = ("gold", "head", "fast_ndd")
    assert publish(data_file, *names) == 30
    before = load_compressions()
    assert publish(data_file, *names) == 30
    assert load_compressions().equals(before)
    assert publish(data_file, "gold", "ppl_deleter") == 40
    after = load_compressions()
    assert after.filter(pl.col("system") != "ppl_deleter").equals(before)
    compressions.publish([compressions.stage("gold", "other", DAY, str(data_file))], "other", DAY)
    assert load_compressions().filter(source="sample").equals(after)


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
    remaining = load_compressions().select("system", "item_id").rows()
    assert sorted(remaining) == sorted([
        *((system, first["item_id"]) for system in ("gold", "fast_ndd", "head")), ("gold", second["item_id"]),
    ])  # fmt: skip


@pytest.mark.usefixtures("tables")
def test_measures_are_the_metrics_own(data_file: Path) -> None:
    """Each system is measured by language as by `metrics.ndd.compression`, on the sentences that it compressed."""
    publish(data_file, "gold", *BASELINES, *MODEL_SYSTEMS, "fast_ndd_sc")
    rows = compressions.measure("sample", DAY)
    TABLES["studies"].schema.validate(rows)
    items = compressions.load_items(str(data_file))
    for system, lang, count in (("fast_ndd", "en", 6), ("head", "zh", 4), ("fast_ndd_sc", "en", 5)):
        predictions = compress(system, data_file).filter(lang=lang).select("item_id", rounds="rounds")
        part = items.join(predictions, on="item_id", maintain_order="left").sort("item_id")
        predicted = [[number == 0 for number in rounds] for rounds in part["rounds"]]
        expected = measures.evaluate(predicted, part).with_columns(pl.col("value", "low", "high").round(6))
        system_rows = select(rows.filter(subset=f"sample:{lang}"), system=system)
        measures_rows = system_rows.filter(
            ~pl.col("metric").str.contains("kept_"), ~pl.col("setting").str.contains("against")
        )
        assert (
            measures_rows.select("metric", "value", "low", "high", n="row_count")
            .sort("metric")
            .equals(expected.select("metric", "value", "low", "high", "n").sort("metric"))
        ), system
        assert set(measures_rows["row_count"]) == {count}
    assert not select(rows.filter(subset="sample:zh"), system="fast_ndd_sc").height


@pytest.mark.usefixtures("tables")
def test_positions_sum_up(data_file: Path) -> None:
    """Over the tenths of a sentence, the counts add up to all words and to those that stay (figure 6)."""
    publish(data_file, "gold", "head")
    rows = compressions.measure("sample", DAY)
    for system in ("gold", "head"):
        rounds = compress(system, data_file).filter(lang="en")["rounds"]
        positions = select(rows.filter(pl.col("metric").str.starts_with("kept_"), subset="sample:en"), system=system)
        assert positions["metric"].n_unique() == positions.height == 10
        assert positions["row_count"].sum() == sum(map(len, rounds))
        kept_count = sum([*sentence_rounds].count(0) for sentence_rounds in rounds)
        assert (positions["value"] * positions["row_count"]).sum() == pytest.approx(kept_count, abs=1e-3)
    first_share, *_, last_share = select(rows.filter(subset="sample:en"), system="head").filter(
        pl.col("metric").is_in(["kept_0", "kept_9"])
    ).sort("metric")["value"]  # fmt: skip
    assert (first_share, last_share) == (0, 1)  # head drops the first words


@pytest.mark.usefixtures("tables")
def test_each_system_is_compared_with_its_best_rival(data_file: Path) -> None:
    """The rival is the best in F1 of the baselines and PPL Deleter, without copying and the system itself."""
    publish(data_file, "gold", *BASELINES, *MODEL_SYSTEMS)
    rows = compressions.measure("sample", DAY).filter(subset="sample:en")
    scored = {
        name: select(rows.filter(metric="f1_macro"), system=name)["value"].item()
        for name in (*BASELINES, *MODEL_SYSTEMS)
    }
    rival_scores = {name: scored[name] for name in ("head", "tail", "random", "ppl_deleter")}
    best = max(rival_scores, key=rival_scores.__getitem__)
    comparisons = select(rows, against=best)
    assert comparisons.height == rows.filter(pl.col("setting").str.contains("against")).height
    assert {json.loads(text)["system"] for text in comparisons["setting"]} == {*MODEL_SYSTEMS} - {best}
    for name in {*MODEL_SYSTEMS} - {best}:
        difference, p = (
            select(comparisons.filter(metric=f"f1_macro_{kind}"), system=name).row(0, named=True)
            for kind in ("difference", "p")
        )
        assert difference["value"] == pytest.approx(scored[name] - scored[best], abs=1e-5)
        assert difference["low"] <= difference["value"] <= difference["high"]
        assert 0 < p["value"] <= 1
        assert (p["low"], p["high"]) == (None, None)


@pytest.mark.usefixtures("tables")
def test_a_system_without_rivals(data_file: Path) -> None:
    """A system without rivals has no row of significance; a day without compressions has no rows."""
    publish(data_file, "gold", "unedited", "fast_ndd")
    assert not compressions.measure("sample", DAY)["setting"].str.contains("against").any()
    assert compressions.measure("sample", "2026-11-20").height == 0


@pytest.mark.usefixtures("tables")
def test_measures_and_thresholds_have_their_own_subsets(data_file: Path) -> None:
    """Writing twice replaces the rows; table 6 has its own subset, which `load_measures` leaves out."""
    publish(data_file, "gold", "head", "fast_ndd")
    for _ in range(2):
        compressions.replace_study("compression", compressions.measure("sample", DAY), DAY)
    overview = compressions.load_measures("sample", DAY)
    rows = compressions.try_thresholds(compressions.load_items(str(data_file)), "sample", DAY)
    compressions.replace_study("compression", rows, DAY)
    all_rows = load_studies()
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


def build_pairs() -> pl.DataFrame:
    """Edits of eight sentences, of which the positive ones change nothing, and six graded pairs."""
    base = [f"the {thing} is {state} today".split() for thing in ("bus", "soup") for state in STATES]
    edits = [
        {"test": "lemma", "pair_id": f"{number}{label}", "sentence_id": str(number), "one": words,
         "other": words if label else ["a", "b", *words[2:]], "is_positive": label}
        for number, words in enumerate(base) for label in (True, False)
    ]  # fmt: skip
    graded = [
        {"test": "supervised", "pair_id": f"s{number}", "sentence_id": f"s{number}", "one": words,
         "other": [*words[:number], *["so"] * (5 - number)], "similarity": float(number), "overlap": number / 5}
        for number, words in enumerate(base[:6])
    ]  # fmt: skip
    return pl.DataFrame([*edits, *graded], infer_schema_length=None)


def test_similarities_prefer_the_nearer_edit() -> None:
    """Edits that change nothing are at distance 0, so NDD separates all pairs; quantiles are of its distances."""
    rows = distance.study_similarity(build_pairs(), DAY)
    TABLES["studies"].schema.validate(rows)
    accuracy = select(rows.filter(subset="lemma", metric="paired_accuracy"), measure="ndd").row(0, named=True)
    assert (accuracy["value"], accuracy["row_count"]) == (1.0, 8)
    assert select(rows.filter(subset="lemma", metric="pearson"), measure="ndd")["value"].item() > 0.5
    quantiles = select(rows.filter(pl.col("metric").str.starts_with("q")), measure="ndd")
    assert set(quantiles.filter(subset="lemma:positive")["value"]) == {0.0}
    assert quantiles.filter(subset="lemma:negative", metric="q000")["value"].item() > 0
    assert {json.loads(text)["measure"] for text in rows["setting"]} == {"ndd", "ndd_kl", "perplexity"}
    assert "overlap>0.1" in set(rows["subset"])
    model = masked_lm.load_model().model.signature
    assert select(rows, model=model).height == rows.height


@pytest.mark.usefixtures("tables")
def test_another_model_replaces_the_numbers(treebank: list[trees.Tree], count_folder: str) -> None:
    """Each study has the rows of the last run, whatever the model of earlier rows."""
    signatures = {ref: masked_lm.load_model(ref).model.signature for ref in (None, count_folder)}
    assert len({*signatures.values()}) == 2
    for ref, signature in signatures.items():
        by_study = {
            "similarity": distance.study_similarity(build_pairs(), DAY, ref),
            "pruning": distance.study_pruning(treebank, DAY, ref),
            "predicates": distance.study_predicates(treebank, DAY, ref),
        }  # fmt: skip
        for study, rows in by_study.items():
            compressions.replace_study(study, rows, DAY)
        all_rows = load_studies()
        assert all_rows.height == sum(rows.height for rows in by_study.values())
        assert not all_rows.select(KEY).is_duplicated().any()
        assert select(all_rows, model=signature).height == all_rows.height


def test_pruning_beside_chance(treebank: list[trees.Tree]) -> None:
    """Each reading of a subtree and threshold, of ours and PPL Deleter at one ratio, and as many spans by chance."""
    rows = distance.study_pruning(treebank, DAY)
    TABLES["studies"].schema.validate(rows)
    assert set(rows["subset"]) == {*get_args(pruning.Subtree)}
    settings = [json.loads(setting) for setting in rows["setting"]]
    assert {setting["system"] for setting in settings} == {
        "ndd", "ppl_deleter", "random_like_ndd", "random_like_ppl_deleter",
    }  # fmt: skip
    assert {setting["threshold"] for setting in settings} == {*distance.THRESHOLDS}
    for threshold in distance.THRESHOLDS:
        system_settings = [
            select(rows, system=name, threshold=threshold)["setting"][0] for name in ("ndd", "ppl_deleter")
        ]
        ndd_ratio, deleter_ratio = (json.loads(setting)["ratio"] for setting in system_settings)
        assert deleter_ratio == pytest.approx(ndd_ratio, abs=0.02)
    depths = select(rows.filter(pl.col("metric").str.starts_with("depth"), subset="one"), system="ndd", threshold=2.0)
    if depths["row_count"].sum():
        assert depths["value"].sum() == pytest.approx(1, abs=1e-5)


def test_predicates_beside_chance(treebank: list[trees.Tree]) -> None:
    """NDD of three edits and their ensemble, perplexity of two, and chance, whose AUC is one half."""
    rows = distance.study_predicates(treebank, DAY)
    TABLES["studies"].schema.validate(rows)
    measured_edits = {(setting["measure"], setting["edit"]) for setting in map(json.loads, rows["setting"])}
    assert measured_edits == {
        *(("ndd", edit) for edit in (*get_args(Edit), "ensemble")), ("perplexity", "delete"), ("perplexity", "mask"),
        ("chance", "none"),
    }  # fmt: skip
    aucs = select(rows.filter(pl.col("metric").str.contains("auc")), measure="chance")
    assert aucs.height
    assert set(aucs["value"]) == {0.5}


def test_treebanks(tmp_path: Path) -> None:
    """Sentences of 2 to 50 words, so many at most; one without any is refused."""
    assert len(distance.load_treebank(limit=3)) == 3
    path = tmp_path / "one.conllu"
    path.write_text("1\tStop\tstop\tVERB\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"one.conllu: no sentence of 2 to 50 words"):
        distance.load_treebank(str(path))


@pytest.mark.usefixtures("wordnet")
def test_pairs_of_every_test(tmp_path: Path) -> None:
    """Edits of the graded pairs' sentences, so many at most, and the English pairs with their overlap."""
    path = tmp_path / "graded.jsonl"
    pairs = [
        ("The soup was really good.", "The soup was very good."), ("A dog walked home.", "A dog ran home."),
        ("He closed the big door.", "She opened the small door."), ("今天很冷", "今天很热"),
    ]  # fmt: skip
    path.write_text("".join(json.dumps({"one": one, "other": other, "similarity": 3}) + "\n" for one, other in pairs),
                    encoding="utf-8")  # fmt: skip
    rows = distance.build_test_pairs(str(path), limit=2)
    graded = rows.filter(test="supervised")
    assert graded.height == 3
    assert graded["overlap"].to_list() == pytest.approx([5 / 6, 4 / 5, 3 / 6])
    assert graded["is_positive"].null_count() == 3
    edited = rows.filter(pl.col("test") != "supervised")
    assert edited.height
    assert edited["sentence_id"].n_unique() <= 2
    assert edited.group_by("test", "sentence_id").agg(pl.col("is_positive").sort())["is_positive"].to_list() == [
        [False, True]
    ] * (edited.height // 2)  # fmt: skip


def test_summary_of_tests(treebank: list[trees.Tree]) -> None:
    """The summary has no quantiles, curves or empty columns, and only the printed reading of subtrees."""
    summary = distance.summarize_tests(distance.study_similarity(build_pairs(), DAY))
    assert summary.columns == ["subset", "measure", "metric", "value", "low", "high", "n"]
    assert set(summary["metric"]) == {"pearson", "paired_accuracy"}
    assert set(summary["subset"]) <= {"lemma", "supervised"}
    assert set(distance.summarize_tests(distance.study_pruning(treebank, DAY))["subset"]) == {"one"}


@pytest.mark.parametrize("study", ["pruning", "predicates"])
def test_studies_by_name(study: str) -> None:
    """Each study of a treebank has rows of its own name and day."""
    rows = distance.run_study(study, DAY, limit=3)
    assert set(rows["study"]) == {study}
    assert rows["day"].unique().to_list() == [parse_day(DAY)]


@pytest.mark.usefixtures("tables")
def test_a_model_for_one_language(data_file: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only English has a transformer, systems that compare states compress English alone."""
    monkeypatch.setenv("UNDERTONE_MASKED_LM", f"en={bert}")
    assert compressions.list_systems(["cosine"])[-1] == "cosine"
    rows = compress("cosine", data_file)
    assert rows["lang"].to_list() == ["en"] * 6
    assert all(signature.startswith("compression:cosine|hf:") for signature in rows["signature"])
    distances = distance.measure_distances(
        [["the", "soup"]] * 2, [["the", "soup"], ["cold", "soup"]], masked_lm.load_model()
    )
    assert [*distances] == ["ndd", "ndd_kl", "perplexity", "cosine", "ensemble"]
    assert (distances["ndd"][0], distances["perplexity"][0]) == (0, 0)
    assert distances["cosine"][0] == pytest.approx(1)
    assert np.all(distances["ndd"][1:] > 0)


def test_google_and_colloquial_at_the_gold_ratio(data: Path) -> None:
    """Real sentences keep as many words as people kept, within two points; no mask is left in Chinese ones."""
    english = compressions.load_items(str(data / "sentence_compression_en"), "google").head(20)
    chinese = compressions.load_items(str(data / "sentence_compression_zh"), "colloquial", "test")
    assert chinese.height == 150
    for rows, source in ((english, "google"), (chinese, "colloquial")):
        gold = sum(map(sum, rows["kept"])) / sum(map(len, rows["kept"]))
        predictions = compressions.compress_items(rows, "fast_ndd", source, DAY)
        TABLES["compressions"].schema.validate(predictions)
        kept_ratio = sum([*rounds].count(0) for rounds in predictions["rounds"]) / sum(map(len, predictions["rounds"]))
        assert kept_ratio == pytest.approx(gold, abs=0.02)
        assert "[地址]" not in {word for words in predictions["words"] for word in words}


def test_subtrees_of_a_treebank(data: Path) -> None:
    """What is dropped of UD's English test sentences is subtrees of what was left before each round (NDD-21)."""
    path = data / "ud_english_ewt" / "en_ewt-ud-test.conllu"
    treebank = distance.load_treebank(str(path), 20)
    rows = pl.DataFrame(
        {
            "item_id": [str(number) for number in range(len(treebank))],
            "words": [[*tree.words] for tree in treebank],
            "kept": [[place % 2 == 0 for place in range(len(tree.words))] for tree in treebank],
        }
    ).with_columns(lang=pl.lit("en"))
    for system in ("fast_ndd_sc", "ppl_deleter_sc"):
        predictions = compressions.compress_items(rows, system, "ewt", DAY, syntax=path)
        assert predictions.height == len(treebank)
        heads_by_sentence = systems.find_heads(predictions["words"].to_list(), "en", path)
        dropped = [sentence_rounds.to_list() for sentence_rounds in predictions["rounds"]]
        assert all(
            heads and is_of_subtrees(heads, rounds) for heads, rounds in zip(heads_by_sentence, dropped, strict=True)
        )
        assert max(map(max, dropped)) > 1
    assert not is_of_subtrees((1, -1, 1), (0, 1, 0))


def test_less_is_kept_at_a_higher_threshold_and_with_longer_spans() -> None:
    """Table 6 on the sample: the ratio falls as N_max rises, and as L_max does (NDD-33)."""
    rows = compressions.load_items().group_by("lang", maintain_order=True).head(20)
    ratios = compressions.try_thresholds(rows, "sample", DAY).filter(metric="ratio")
    setting = pl.Struct({"threshold": pl.Float64, "longest": pl.Int64})
    ratios_by_setting = ratios.with_columns(pl.col("setting").str.json_decode(setting)).unnest("setting")
    for part in ratios_by_setting.partition_by("subset"):
        by_threshold = part.filter(longest=5).sort("threshold")["value"].to_list()
        by_length = part.filter(threshold=1.0).sort("longest")["value"].to_list()
        assert by_threshold == sorted(by_threshold, reverse=True)
        assert by_length == sorted(by_length, reverse=True)
        assert by_threshold[0] > by_threshold[-1]
