"""NDD in the tables: compressions of data sets, what they are worth, and the tests of the distance (NDD, sections 3 to
5).
"""

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
from pipeline.tasks.ndd import compressions as ndd
from pipeline.tasks.ndd import distance, masked_lm, systems
from pipeline.text import trees

DAY = sample.DAY
OURS = ("ndd", "fast_ndd", "ppl_deleter")
BASELINES = ("unedited", "head", "tail", "random")
STATES = ("late", "cold", "shut", "new")
KEY = list(TABLES["studies"].key)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six English sentences of the sample, all but one with trees, and four Chinese ones."""
    lines = sample.COMPRESSIONS.read_text(encoding="utf-8").splitlines()
    english = [line for line in lines if '"lang": "en"' in line]
    bare = {"item_id": "bare", "words": ["Nobody", "saw", "the", "bus", "."], "kept": [1, 1, 0, 1, 1], "lang": "en"}
    path = tmp_path_factory.mktemp("few") / "few.jsonl"
    path.write_text("\n".join([*english[:5], json.dumps(bare), *lines[-4:]]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Another model of counts, of six sentences, as a folder."""
    folder = tmp_path_factory.mktemp("counts") / "model"
    masked_lm.count_file([tree.text for tree in trees.read(sample.TREES)][:6], folder)
    return str(folder)


@pytest.fixture(scope="module")
def some() -> list[trees.Tree]:
    """Six sentences of the sample's treebank."""
    return distance.treebank(limit=6)


def made(system: str, path: Path, source: str = "sample", **options: object) -> pl.DataFrame:
    """Compressions of a file by a system."""
    return ndd.compress_items(ndd.items(str(path)), system, source, DAY, **options)  # type: ignore[arg-type]


def publish(path: Path, *names: str, ref: str | None = None) -> int:
    """Stage and publish what some systems make of a file."""
    return ndd.publish([ndd.stage(name, "sample", DAY, str(path), ref=ref) for name in names], "sample", DAY)


def compressions() -> pl.DataFrame:
    """All there are, in order."""
    return warehouse.scan("compressions").sort("item_id", "system").collect()


def studies() -> pl.DataFrame:
    """All there are, in order."""
    return warehouse.scan("studies").sort(pl.all()).collect()


def of(rows: pl.DataFrame, **setting: object) -> pl.DataFrame:
    """Rows of a study with this in their setting."""
    wanted = [setting.items() <= json.loads(each).items() for each in rows["setting"]]
    return rows.filter(pl.Series(wanted, dtype=pl.Boolean))


def is_of_subtrees(heads: Sequence[int], rounds: Sequence[int]) -> bool:
    """Whether all that a round drops side by side is one or more subtrees of what was left before it (NDD-21)."""
    left, numbers = [*heads], [*rounds]
    for number in range(1, max(rounds) + 1):
        spans = {(start, end) for start, end in trees.find_subtrees(left).tolist()}
        for start, end in pruning.list_dropped_spans([each == number for each in numbers]):
            reached = {start}
            for at in range(start, end):
                reached |= {stop for begin, stop in spans if begin == at and at in reached}
            if end not in reached:
                return False
        stays = [each != number for each in numbers]
        left = trees.drop_words(left, stays).tolist()
        numbers = [each for each in numbers if each != number]
    return True


def test_sentences_of_a_file(few: Path, tmp_path: Path) -> None:
    """The sample's without a file; a file without a sentence that can be used is told of."""
    assert ndd.items().height == 100
    assert ndd.items(str(few))["lang"].to_list() == ["en"] * 6 + ["zh"] * 4
    none = tmp_path / "none.jsonl"
    none.write_text('{"text": "so", "compressed": "never"}\n', encoding="utf-8")
    with pytest.raises(Missing, match=r"none.jsonl: no sentences to compress"):
        ndd.items(str(none))
    with pytest.raises(BadInput, match="no source 'bnc'; there are own, google, broadcast, colloquial"):
        ndd.items(str(few), "bnc")


def test_masks_of_colloquial_are_spoken(tmp_path: Path) -> None:
    """What stands for a place or a number is what people say instead, in items and in what comes of them (NDD-28)."""
    words = [["你们", "[地址]", "有", "店", "吗"], ["打", "[电话号码]", "吧"], ["嗯", "好"]]
    labels = [["0", "1", "1", "1", "0"], ["1", "1", "0"], ["0", "1"]]
    both = zip(words, labels, strict=True)
    told = "".join(f"{number}\t{said}\n\t{kept}\n" for number, (said, kept) in enumerate(both))
    (tmp_path / "alldata-3.txt").write_text(told, encoding="utf-8")
    (tmp_path / "shuffled_idx-3.txt").write_text("[2, 0, 1]\n", encoding="utf-8")
    rows = ndd.items(str(tmp_path), "colloquial", "test")
    assert rows["words"].to_list() == [["嗯", "好"], ["你们", "某地", "有", "店", "吗"], ["打", "电话", "吧"]]
    found = ndd.compress_items(rows, "fast_ndd", "colloquial", DAY)
    assert found["words"].to_list() == rows["words"].to_list()
    with pytest.raises(BadInput, match="no rows of the part 'train'; there are test"):
        ndd.items(str(tmp_path), "colloquial", "train")


def test_systems_that_counts_cannot_do_are_left_out(few: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Gold and the baselines always; what compares states only where a model has some, and its log says so."""
    with caplog.at_level("INFO", logger="pipeline"):
        assert ndd.systems([*systems.SYSTEMS]) == [
            "gold", *BASELINES, "ndd", "ndd_sc", "fast_ndd", "fast_ndd_sc", "ppl_deleter", "ppl_deleter_sc",
        ]  # fmt: skip
    assert "cosine, cosine_sc, bertscore, bertscore_sc" in caplog.text
    assert made("cosine", few).height == 0
    with pytest.raises(BadInput, match="no system 'gold'; there are ndd"):
        ndd.systems(["gold"])


@pytest.mark.parametrize("system", ["gold", *BASELINES, *OURS, "fast_ndd_sc"])
def test_rows_fit_the_contract(few: Path, system: str) -> None:
    """A row a sentence; unless another ratio is given, each language keeps as large a share as people did."""
    rows = made(system, few)
    TABLES["compressions"].schema.validate(rows)
    assert set(rows["system"]) == {system}
    items = ndd.items(str(few)).join(rows.select("item_id", "rounds"), on="item_id", maintain_order="left")
    if system == "gold":
        assert [[number == 0 for number in each] for each in items["rounds"]] == items["kept"].to_list()
    if system in OURS:
        for (lang,), part in items.group_by("lang"):
            gold = sum(map(sum, part["kept"])) / sum(map(len, part["kept"]))
            expected = [max(1, int(round(gold, 4) * len(words) + 0.5)) for words in part["words"]]
            assert [[*each].count(0) for each in part["rounds"]] == expected, lang
    told = {"gold": {"gold"}, **{name: {name} for name in BASELINES}}
    signed = {each.split("|")[0] for each in rows["signature"]}
    assert signed == told.get(system, {f"compression:{system}"})


def test_sentences_without_a_tree_are_left_out_of_subtrees_alone(few: Path) -> None:
    """Of the sample those of its treebank stay; of another source none does without a file, and those of the file."""
    with_trees = [tree.words for tree in trees.read(sample.TREES)]
    expected = [name for name, words in ndd.items(str(few)).select("item_id", "words").iter_rows()
                if tuple(words) in with_trees]  # fmt: skip
    assert len(expected) == 5
    assert made("ndd_sc", few)["item_id"].to_list() == expected
    assert made("ndd_sc", few, "other").height == 0
    assert made("ndd_sc", few, "other", syntax=sample.TREES)["item_id"].to_list() == expected
    assert made("ndd", few, "other").height == 10


def test_a_search_of_ones_own(few: Path) -> None:
    """Its ratio is each language's, and the signature says it; progress is told sentence by sentence."""
    told: list[int] = []
    rows = made("fast_ndd", few, search=Search(ratio=1), done=told.append)
    assert rows["ratio"].to_list() == [1.0] * 10
    assert all("|ratio:1|" in signed for signed in rows["signature"])
    assert sum(told) == 10
    assert ndd.stage("fast_ndd", "sample", DAY, str(few), ratio=0.2)["rows"] == 10


@pytest.mark.usefixtures("tables")
def test_publishing_again_changes_nothing(few: Path) -> None:
    """The same rows twice are the same table; what another run of other systems brings is put beside."""
    names = ("gold", "head", "fast_ndd")
    assert publish(few, *names) == 30
    before = compressions()
    assert publish(few, *names) == 30
    assert compressions().equals(before)
    assert publish(few, "gold", "ppl_deleter") == 40
    now = compressions()
    assert now.filter(pl.col("system") != "ppl_deleter").equals(before)
    ndd.publish([ndd.stage("gold", "other", DAY, str(few))], "other", DAY)
    assert compressions().filter(source="sample").equals(now)


@pytest.mark.usefixtures("tables")
def test_a_system_is_published_anew(few: Path, counts: str) -> None:
    """By another model its rows take the place of those before; sentences that are no longer there go."""
    publish(few, "gold", "fast_ndd", "head")
    publish(few, "gold", "fast_ndd", ref=counts)
    rows = compressions()
    assert rows.height == 30
    model = masked_lm.opened(counts).model.signature
    assert all(f"|{model}|" in signed for signed in rows.filter(system="fast_ndd")["signature"])
    fewer = few.with_name("fewer.jsonl")
    first, second, *_ = map(json.loads, few.read_text(encoding="utf-8").splitlines())
    second |= {"words": [*second["words"], "!"], "kept": [*second["kept"], False]}
    fewer.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n", encoding="utf-8")
    publish(fewer, "gold")
    rest = compressions().select("system", "item_id").rows()
    assert sorted(rest) == sorted([
        *((system, first["item_id"]) for system in ("gold", "fast_ndd", "head")), ("gold", second["item_id"]),
    ])  # fmt: skip


@pytest.mark.usefixtures("tables")
def test_measures_are_the_metrics_own(few: Path) -> None:
    """Each system by language, as `metrics.ndd.compression` gives it of the same words; with trees on its own items."""
    publish(few, "gold", *BASELINES, *OURS, "fast_ndd_sc")
    rows = ndd.measured("sample", DAY)
    TABLES["studies"].schema.validate(rows)
    items = ndd.items(str(few))
    for system, lang, count in (("fast_ndd", "en", 6), ("head", "zh", 4), ("fast_ndd_sc", "en", 5)):
        kept = made(system, few).filter(lang=lang).select("item_id", rounds="rounds")
        part = items.join(kept, on="item_id", maintain_order="left").sort("item_id")
        said = [[number == 0 for number in each] for each in part["rounds"]]
        expected = measures.evaluate(said, part).with_columns(pl.col("value", "low", "high").round(6))
        found = of(rows.filter(subset=f"sample:{lang}"), system=system)
        told = found.filter(~pl.col("metric").str.contains("kept_"), ~pl.col("setting").str.contains("against"))
        assert (
            told.select("metric", "value", "low", "high", n="row_count")
            .sort("metric")
            .equals(expected.select("metric", "value", "low", "high", "n").sort("metric"))
        ), system
        assert set(told["row_count"]) == {count}
    assert not of(rows.filter(subset="sample:zh"), system="fast_ndd_sc").height


@pytest.mark.usefixtures("tables")
def test_positions_sum_up(few: Path) -> None:
    """Over the tenths of sentences the shares make up all words and those that stay (figure 6), gold's too."""
    publish(few, "gold", "head")
    rows = ndd.measured("sample", DAY)
    for system in ("gold", "head"):
        mine = made(system, few).filter(lang="en")["rounds"]
        told = of(rows.filter(pl.col("metric").str.starts_with("kept_"), subset="sample:en"), system=system)
        assert told["metric"].n_unique() == told.height == 10
        assert told["row_count"].sum() == sum(map(len, mine))
        stay = sum([*each].count(0) for each in mine)
        assert (told["value"] * told["row_count"]).sum() == pytest.approx(stay, abs=1e-3)
    first, *_, last = of(rows.filter(subset="sample:en"), system="head").filter(
        pl.col("metric").is_in(["kept_0", "kept_9"])
    ).sort("metric")["value"]  # fmt: skip
    assert (first, last) == (0, 1)  # head drops the first words


@pytest.mark.usefixtures("tables")
def test_each_system_is_held_against_the_best_of_the_others(few: Path) -> None:
    """The best in F1 of the baselines and PPL Deleter; copying is no rival, and none is held against itself."""
    publish(few, "gold", *BASELINES, *OURS)
    rows = ndd.measured("sample", DAY).filter(subset="sample:en")
    scored = {name: of(rows.filter(metric="f1_macro"), system=name)["value"].item() for name in (*BASELINES, *OURS)}
    others = {name: scored[name] for name in ("head", "tail", "random", "ppl_deleter")}
    best = max(others, key=others.__getitem__)
    told = of(rows, against=best)
    assert told.height == rows.filter(pl.col("setting").str.contains("against")).height
    assert {json.loads(each)["system"] for each in told["setting"]} == {*OURS} - {best}
    for name in {*OURS} - {best}:
        difference, p = (
            of(told.filter(metric=f"f1_macro_{kind}"), system=name).row(0, named=True) for kind in ("difference", "p")
        )
        assert difference["value"] == pytest.approx(scored[name] - scored[best], abs=1e-5)
        assert difference["low"] <= difference["value"] <= difference["high"]
        assert 0 < p["value"] <= 1
        assert (p["low"], p["high"]) == (None, None)


@pytest.mark.usefixtures("tables")
def test_without_another_nothing_is_held_against_it(few: Path) -> None:
    """Ours alone beside gold and copying has no row of significance; a day without rows has none at all."""
    publish(few, "gold", "unedited", "fast_ndd")
    assert not ndd.measured("sample", DAY)["setting"].str.contains("against").any()
    assert ndd.measured("sample", "2026-11-20").height == 0


@pytest.mark.usefixtures("tables")
def test_overview_and_thresholds_stand_side_by_side(few: Path) -> None:
    """What is put again replaces itself; table 6 is of its own subset, and the overview shows neither it nor p."""
    publish(few, "gold", "head", "fast_ndd")
    for _ in range(2):
        ndd.put("compression", ndd.measured("sample", DAY), DAY)
    seen = ndd.overview("sample", DAY)
    rows = ndd.ratios(ndd.items(str(few)), "sample", DAY)
    ndd.put("compression", rows, DAY)
    every = studies()
    assert not every.select(KEY).is_duplicated().any()
    assert every.filter(pl.col("subset").str.ends_with(":thresholds")).height == rows.height
    assert ndd.overview("sample", DAY).equals(seen)
    assert seen.columns == ["metric", "value", "low", "high", "by", "lang", "n"]
    assert set(seen["by"]) == {"gold", "head", "fast_ndd"}
    assert set(seen["lang"]) == {"en", "zh"}
    told = {(each["threshold"], each["longest"]) for each in map(json.loads, rows["setting"])}
    assert told == {*ndd.GRID}
    kept = {each: of(rows.filter(metric="ratio", subset="sample:en:thresholds"), threshold=each, longest=5)["value"]
            for each in (4.0, 0.25)}  # fmt: skip
    assert kept[4.0].item() <= kept[0.25].item()


def pairs_of() -> pl.DataFrame:
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
    """Edits that change nothing are at distance 0, so that NDD tells all apart; quantiles are of its distances."""
    rows = distance.similarities(pairs_of(), DAY)
    TABLES["studies"].schema.validate(rows)
    found = of(rows.filter(subset="lemma", metric="paired_accuracy"), measure="ndd").row(0, named=True)
    assert (found["value"], found["row_count"]) == (1.0, 8)
    assert of(rows.filter(subset="lemma", metric="pearson"), measure="ndd")["value"].item() > 0.5
    quantiles = of(rows.filter(pl.col("metric").str.starts_with("q")), measure="ndd")
    assert set(quantiles.filter(subset="lemma:positive")["value"]) == {0.0}
    assert quantiles.filter(subset="lemma:negative", metric="q000")["value"].item() > 0
    assert {json.loads(each)["measure"] for each in rows["setting"]} == {"ndd", "ndd_kl", "perplexity"}
    assert "overlap>0.1" in set(rows["subset"])
    model = masked_lm.opened().model.signature
    assert of(rows, model=model).height == rows.height


@pytest.mark.usefixtures("tables")
def test_another_model_replaces_the_numbers(some: list[trees.Tree], counts: str) -> None:
    """Of each study there are the rows of the last run, whichever model made those before."""
    signed = {ref: masked_lm.opened(ref).model.signature for ref in (None, counts)}
    assert len({*signed.values()}) == 2
    for ref, signature in signed.items():
        made = {
            "similarity": distance.similarities(pairs_of(), DAY, ref), "pruning": distance.prunings(some, DAY, ref),
            "predicates": distance.predicates(some, DAY, ref),
        }  # fmt: skip
        for study, rows in made.items():
            ndd.put(study, rows, DAY)
        every = studies()
        assert every.height == sum(rows.height for rows in made.values())
        assert not every.select(KEY).is_duplicated().any()
        assert of(every, model=signature).height == every.height


def test_pruning_beside_chance(some: list[trees.Tree]) -> None:
    """Each reading of a subtree and threshold, of ours and PPL Deleter at one ratio, and as many spans by chance."""
    rows = distance.prunings(some, DAY)
    TABLES["studies"].schema.validate(rows)
    assert set(rows["subset"]) == {*get_args(pruning.Subtree)}
    told = [json.loads(each) for each in rows["setting"]]
    assert {each["system"] for each in told} == {
        "ndd", "ppl_deleter", "random_like_ndd", "random_like_ppl_deleter",
    }  # fmt: skip
    assert {each["threshold"] for each in told} == {*distance.THRESHOLDS}
    for threshold in distance.THRESHOLDS:
        kept = [of(rows, system=name, threshold=threshold)["setting"][0] for name in ("ndd", "ppl_deleter")]
        ours, theirs = (json.loads(each)["ratio"] for each in kept)
        assert theirs == pytest.approx(ours, abs=0.02)
    depths = of(rows.filter(pl.col("metric").str.starts_with("depth"), subset="one"), system="ndd", threshold=2.0)
    if depths["row_count"].sum():
        assert depths["value"].sum() == pytest.approx(1, abs=1e-5)


def test_predicates_beside_chance(some: list[trees.Tree]) -> None:
    """NDD of three edits and their ensemble, perplexity of two, and chance, whose AUC is one half."""
    rows = distance.predicates(some, DAY)
    TABLES["studies"].schema.validate(rows)
    told = {(each["measure"], each["edit"]) for each in map(json.loads, rows["setting"])}
    assert told == {
        *(("ndd", edit) for edit in (*get_args(Edit), "ensemble")), ("perplexity", "delete"), ("perplexity", "mask"),
        ("chance", "none"),
    }  # fmt: skip
    aucs = of(rows.filter(pl.col("metric").str.contains("auc")), measure="chance")
    assert aucs.height
    assert set(aucs["value"]) == {0.5}


def test_treebanks(tmp_path: Path) -> None:
    """Sentences of 2 to 50 words, so many at most; one without any is refused."""
    assert len(distance.treebank(limit=3)) == 3
    path = tmp_path / "one.conllu"
    path.write_text("1\tStop\tstop\tVERB\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"one.conllu: no sentence of 2 to 50 words"):
        distance.treebank(str(path))


@pytest.mark.usefixtures("wordnet")
def test_pairs_of_every_test(tmp_path: Path) -> None:
    """Edits of the graded pairs' sentences, so many at most, and the English pairs with their overlap."""
    path = tmp_path / "graded.jsonl"
    said = [
        ("The soup was really good.", "The soup was very good."), ("A dog walked home.", "A dog ran home."),
        ("He closed the big door.", "She opened the small door."), ("今天很冷", "今天很热"),
    ]  # fmt: skip
    path.write_text("".join(json.dumps({"one": one, "other": other, "similarity": 3}) + "\n" for one, other in said),
                    encoding="utf-8")  # fmt: skip
    rows = distance.pairs(str(path), limit=2)
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


def test_what_people_are_shown(some: list[trees.Tree]) -> None:
    """Neither quantiles nor curves, the printed reading of subtrees, and no column that says nothing."""
    shown = distance.tests_shown(distance.similarities(pairs_of(), DAY))
    assert shown.columns == ["subset", "measure", "metric", "value", "low", "high", "n"]
    assert set(shown["metric"]) == {"pearson", "paired_accuracy"}
    assert set(shown["subset"]) <= {"lemma", "supervised"}
    assert set(distance.tests_shown(distance.prunings(some, DAY))["subset"]) == {"one"}


@pytest.mark.parametrize("study", ["pruning", "predicates"])
def test_studies_by_name(study: str) -> None:
    """Those of a treebank are of its first sentences."""
    rows = distance.study_rows(study, DAY, limit=3)
    assert set(rows["study"]) == {study}
    assert rows["day"].unique().to_list() == [parse_day(DAY)]


@pytest.mark.usefixtures("tables")
def test_a_model_for_one_language(few: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where English has a transformer and Chinese counts, what compares states is there for English alone."""
    monkeypatch.setenv("UNDERTONE_MASKED_LM", f"en={bert}")
    assert ndd.systems(["cosine"])[-1] == "cosine"
    rows = made("cosine", few)
    assert rows["lang"].to_list() == ["en"] * 6
    assert all(signed.startswith("compression:cosine|hf:") for signed in rows["signature"])
    found = distance.distances([["the", "soup"]] * 2, [["the", "soup"], ["cold", "soup"]], masked_lm.opened())
    assert [*found] == ["ndd", "ndd_kl", "perplexity", "cosine", "ensemble"]
    assert (found["ndd"][0], found["perplexity"][0]) == (0, 0)
    assert found["cosine"][0] == pytest.approx(1)
    assert np.all(found["ndd"][1:] > 0)


def test_google_and_colloquial_at_the_gold_ratio(data: Path) -> None:
    """Real sentences keep as many words as people kept, within two points; no mask is left in Chinese ones."""
    english = ndd.items(str(data / "sentence_compression_en"), "google").head(20)
    chinese = ndd.items(str(data / "sentence_compression_zh"), "colloquial", "test")
    assert chinese.height == 150
    for rows, source in ((english, "google"), (chinese, "colloquial")):
        gold = sum(map(sum, rows["kept"])) / sum(map(len, rows["kept"]))
        found = ndd.compress_items(rows, "fast_ndd", source, DAY)
        TABLES["compressions"].schema.validate(found)
        stay = sum([*each].count(0) for each in found["rounds"]) / sum(map(len, found["rounds"]))
        assert stay == pytest.approx(gold, abs=0.02)
        assert "[地址]" not in {word for words in found["words"] for word in words}


def test_subtrees_of_a_treebank(data: Path) -> None:
    """What is dropped of UD's English test sentences is subtrees of what was left before each round (NDD-21)."""
    path = data / "ud_english_ewt" / "en_ewt-ud-test.conllu"
    some = distance.treebank(str(path), 20)
    rows = pl.DataFrame({
        "item_id": [str(number) for number in range(len(some))], "words": [[*tree.words] for tree in some],
        "kept": [[at % 2 == 0 for at in range(len(tree.words))] for tree in some], "lang": ["en"] * len(some),
    })  # fmt: skip
    for system in ("fast_ndd_sc", "ppl_deleter_sc"):
        found = ndd.compress_items(rows, system, "ewt", DAY, syntax=path)
        assert found.height == len(some)
        above = systems.heads(found["words"].to_list(), "en", path)
        dropped = [each.to_list() for each in found["rounds"]]
        assert all(heads and is_of_subtrees(heads, rounds) for heads, rounds in zip(above, dropped, strict=True))
        assert max(map(max, dropped)) > 1
    assert not is_of_subtrees((1, -1, 1), (0, 1, 0))


def test_less_is_kept_at_a_higher_threshold_and_with_longer_spans() -> None:
    """Table 6 on the sample: the ratio falls as N_max rises, and as L_max does (NDD-33)."""
    rows = ndd.items().group_by("lang", maintain_order=True).head(20)
    found = ndd.ratios(rows, "sample", DAY).filter(metric="ratio")
    about = pl.Struct({"threshold": pl.Float64, "longest": pl.Int64})
    told = found.with_columns(pl.col("setting").str.json_decode(about)).unnest("setting")
    for part in told.partition_by("subset"):
        by_threshold = part.filter(longest=5).sort("threshold")["value"].to_list()
        by_length = part.filter(threshold=1.0).sort("longest")["value"].to_list()
        assert by_threshold == sorted(by_threshold, reverse=True)
        assert by_length == sorted(by_length, reverse=True)
        assert by_threshold[0] > by_threshold[-1]
