"""Distil a judge: the heads of the scorer get a readout, a linear map of embeddings to the values of judged texts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from pipeline import left_out, sample
from pipeline.errors import BadInput, Missing
from pipeline.examples.impscore import groups as graded
from pipeline.examples.sources.files import parse_numbers, read_table
from pipeline.examples.splits import draw_uniform
from pipeline.metrics.commenting.correlation import correlate
from pipeline.metrics.impscore import artefacts
from pipeline.metrics.impscore.studies import kendall_tau
from pipeline.metrics.resample import Floats
from pipeline.score.signature import choose_head
from pipeline.tasks.calibration import calibrate
from pipeline.tasks.impscore import scoring
from pipeline.tasks.impscore.train import describe_model, hash_in_order, read_shipped_groups
from pipeline.tasks.record import model_registry, promotion
from pipeline.tasks.record.encoders import choose_precision
from pipeline.text.language import detect_language
from pipeline.training import registry

COLUMN = "implicitness_judged"
SIZES = (100, 300, 1_000, 3_000)  # judged texts of a language to learn from
LEAST = 50  # judged texts of a language
HIGHEST = 4  # of the judge's scale
BASELINES = ("length", "punctuation", "words")
SCHEMA = {
    "lang": pl.String, "by": pl.String, "texts": pl.Int64, "spearman": pl.Float64, "low": pl.Float64,
    "high": pl.Float64, "n": pl.Int64, "cost": pl.Float64,
}  # fmt: skip


def read_judged(path: Path, column: str = COLUMN, text_column: str | None = None) -> pl.DataFrame:
    """Read the judged texts of a file: text, value, lang, split (by `thread_id` if it has that), each with a value."""
    texts = {"text": (text_column,) if text_column else ("text", "comment")}
    rows = read_table([path], texts, {"value": (column,), "thread": ("thread_id",)})
    if rows["value"].null_count() == rows.height:
        raise BadInput(f"{path}: expected the column {column!r} of `undertone judge`; name another by --column")
    rows = parse_numbers(rows, "value", name=column)
    return select_judged(build_rows(rows["text"], rows["value"], rows["thread"]), str(path))


def build_rows(texts: Any, values: Any, threads: Any = None) -> pl.DataFrame:
    """Build judged rows: text, value, thread (perhaps null), lang."""
    columns = {"text": texts, "value": values, "thread": [None] * len(texts) if threads is None else threads}
    rows = pl.DataFrame(columns, schema={"text": pl.String, "value": pl.Float64, "thread": pl.String})
    return rows.with_columns(lang=detect_language())


def load_judged(judge: str = "") -> pl.DataFrame:
    """Load the judged comments of the tables: text, value, lang, split; comments of a thread are in one split."""
    values = calibrate.average(calibrate.load_side(f"judge:{judge}"), "value")
    rows = calibrate.load_comments(values).join(values, on=calibrate.COMMENT, how="inner", maintain_order="left")
    rows = rows.select("text", "value", "lang", thread=pl.concat_str("source", "thread_id", separator="/"))
    return select_judged(rows, "scores")


def select_judged(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    """Select each text once, of languages with enough: text, value (stretched to 0 to 4), lang, split by thread."""
    judged = rows.with_columns(pl.col("text").fill_null("").str.strip_chars())
    judged = judged.filter(pl.col("text") != "", pl.col("value").is_not_null())
    judged = judged.with_columns(group=pl.coalesce("thread", "text"))
    facts = (pl.col("lang", "split").first(), pl.col("value").mean())
    texts = graded.add_split(judged).group_by("text", maintain_order=True).agg(facts).sort("text")
    texts = texts.with_columns(lang=pl.when(pl.col("lang") == "zh").then(pl.lit("zh")).otherwise(pl.lit("en")))
    is_enough = (pl.len().over("lang") >= LEAST) & (pl.col("value").n_unique().over("lang") > 1)
    enough_texts = texts.filter(is_enough)
    if not enough_texts.height:
        expected = f"{LEAST} judged texts of a language or more, with different values"
        count_text = f"{texts.height} of all languages"
        raise Missing(f"{source}: expected {expected}, found {count_text}; see `undertone judge --help`")
    counts = {"no_text_or_value": rows.height - judged.height, "repeated": judged.height - texts.height}
    left_out.record_rows("distil", counts | {"few_of_language": texts.height - enough_texts.height}, source)
    low, high = (pl.col("value").quantile(share).over("lang") for share in (0.01, 0.99))
    is_scale = pl.col("value").is_between(0, HIGHEST).all().over("lang")
    share = (pl.col("value") - low) / pl.max_horizontal(high - low, 1e-9)  # of log-odds of comparisons
    value = pl.when(is_scale).then("value").otherwise((share * HIGHEST).clip(0, HIGHEST))
    return enough_texts.with_columns(value=value)


def fit(rows: pl.DataFrame, day: str | None = None, judge: str | None = None) -> model_registry.TrainedModel:
    """Fit a readout for each language on the model that answers for a day, of which all else stays.

    The configuration names the judge of the tables whose texts these are, or none if they are of a file.
    """
    import torch

    from pipeline.models.encoder import encode
    from pipeline.training.impscore.fit import fit_readout

    base = scoring.load_model(None, day)
    heads, config = scoring.load_heads(base.model_id).heads, base.config
    tensors = {name: tensor for name, tensor in base.tensors().items() if ".readout." not in name}
    evaluations = []
    for (lang,), part in rows.partition_by("lang", as_dict=True, maintain_order=True).items():
        base_name, name = choose_head(str(lang), list(heads)), str(lang)
        vectors = encode(heads[base_name].encoder, part["text"].to_list())
        values = part["value"].to_numpy()
        masks = [(part["split"] == split).to_numpy() for split in ("train", "validation")]
        if not masks[0].any():
            raise BadInput(f"none of the {part.height} judged texts of {lang} is in the split train; judge more")
        readout, alpha = fit_readout(*(side[mask] for mask in masks for side in (vectors, values)))
        if name != base_name:  # a head of its own
            prefix = f"{base_name}."
            tensors |= {name + key[len(base_name) :]: value for key, value in tensors.items() if key.startswith(prefix)}
        tensors |= {f"{name}.readout.{field}": value for field, value in readout._asdict().items()}
        facts = {"alpha": alpha, "texts": int(masks[0].sum())}
        config = {**config, "heads": {**config["heads"], name: {**config["heads"][base_name], "readout": facts}}}
        for split in ("validation", "test"):
            mask = (part["split"] == split).to_numpy()
            predicted = readout(torch.from_numpy(vectors[mask])).numpy()
            evaluations.append((name, split, correlate(predicted, values[mask]).spearman, int(mask.sum())))
    schema = {"subset": pl.String, "split": pl.String, "value": pl.Float64, "pair_count": pl.Int64}
    numbers = pl.DataFrame(evaluations, schema, orient="row").drop_nulls("value")
    numbers = model_registry.complete_evaluations(numbers.with_columns(metric=pl.lit("judge_spearman")))
    config |= {"base": base.model_id, "data_hash": hash_in_order(rows), "judge": judge}
    return replace(
        describe_model(tensors, config, numbers),
        texts=rows["text"],
        labelled=rows.filter(pl.col("split") != "test")["text"],
        base=base.model_id,
        summary={name: head.get("readout", {}) for name, head in config["heads"].items()} | {"base": base.model_id},
        make_held_out=lambda: make_held_out(rows),
    )


def make_held_out(rows: pl.DataFrame) -> list[promotion.HeldOut]:
    """Hold out the judged texts of the test split, compared by rank correlation, and shipped graded groups."""
    held_out = []
    for (lang,), part in rows.partition_by("lang", as_dict=True, maintain_order=True).items():
        test, train_rows = promotion.select_held_out(part), part.filter(pl.col("split") == "train")
        if test.height < 3 or not train_rows.height:
            continue
        count = promotion.rank_against(test["value"])
        examples = train_rows["text"].to_list(), train_rows["value"].to_numpy(), test["text"].to_list()
        predictions = {name: artefacts.predict_values(name, *examples) for name in BASELINES}
        answers: dict[str, Any] = {
            "answer": lambda model, test=test, count=count: count(score(test, model.model_id)),
            "baselines": {name: count(values) for name, values in predictions.items()},
        }
        measure = promotion.compute_correlation
        held_out.append(promotion.HeldOut(metric=f"judge_spearman_{lang}", measure=measure, **answers))
        if lang in sample.GROUPS:
            held_out.append(_hold_out_groups(str(lang)))
    return held_out


def _hold_out_groups(lang: str) -> promotion.HeldOut:
    """Hold out the shipped graded test groups: a judge of few texts must not cost the order that a model knows."""
    groups = read_shipped_groups(lang).filter(pl.col("split") == "test").with_columns(lang=pl.lit(lang))

    def answer(model: registry.Model) -> Floats:
        parts = groups.with_columns(value=score(groups, model.model_id)).partition_by("group", maintain_order=True)
        return promotion.count_shares([kendall_tau(part["level"].to_list(), part["value"].to_list()) for part in parts])

    return promotion.HeldOut(metric=f"graded_groups_tau_{lang}", answer=answer)


def score(rows: pl.DataFrame, model: str | None) -> pl.Series:
    """Score texts (text, lang) by a model: implicitness."""
    texts = rows.select("text", "lang", text_hash=pl.lit(""))
    return scoring.score_texts(texts, model, precision=choose_precision())["value"]


def measure_rivals(rows: pl.DataFrame) -> pl.DataFrame:
    """Measure how far the model that answers now and the surface agree with the judge on held-out texts: SCHEMA."""
    agreements = []
    for part in rows.partition_by("lang", maintain_order=True):
        test, train_rows = promotion.select_held_out(part), part.filter(pl.col("split") == "train")
        examples = train_rows["text"].to_list(), train_rows["value"].to_numpy(), test["text"].to_list()
        values: dict[str, Any] = {"model that answers now": score(test, None)}
        values |= {name: artefacts.predict_values(name, *examples) for name in BASELINES}
        agreements += [_measure_agreement(test, column, name) for name, column in values.items()]
    return pl.DataFrame(agreements, schema=SCHEMA)


def measure_model(rows: pl.DataFrame, model: str, price: float | None = None) -> pl.DataFrame:
    """Measure how far a model distilled from the rows agrees with the judge on those held out: SCHEMA."""
    agreements = []
    for part in rows.partition_by("lang", maintain_order=True):
        test, count = promotion.select_held_out(part), part.filter(pl.col("split") == "train").height
        cost = None if price is None else count * price
        agreement = _measure_agreement(test, score(test, model), "distilled")
        agreements.append({**agreement, "texts": count, "cost": cost})
    return pl.DataFrame(agreements, schema=SCHEMA)


def measure_curve(rows: pl.DataFrame, sizes: Sequence[int] = SIZES, price: float | None = None) -> pl.DataFrame:
    """Measure agreement (SCHEMA) by the number of judged texts, each set within the next; `price` is USD a text."""
    is_train = rows["split"] == "train"
    train_rows = rows.filter(is_train)
    train_rows = train_rows.with_columns(draw_uniform(train_rows["text"]).alias("draw"))
    rank = pl.col("draw").rank("ordinal").over("lang")
    frames = [pl.DataFrame(schema=SCHEMA)]
    for size in sizes:
        langs = train_rows["lang"].value_counts().filter(pl.col("count") > size)["lang"]
        smaller = pl.concat([train_rows.filter(rank <= size).drop("draw"), rows.filter(~is_train)])
        smaller = smaller.filter(pl.col("lang").is_in(langs.implode()))
        if not smaller.height:
            break
        with TemporaryDirectory() as folder:
            trained, path = fit(smaller), Path(folder) / "model"
            registry.write(path, trained.tensors, trained.config)
            frames.append(measure_model(smaller, str(path), price))
    return pl.concat(frames)


def _measure_agreement(rows: pl.DataFrame, values: Any, rater: str) -> dict[str, Any]:
    rho, _, low, high = correlate(pl.Series(values), rows["value"])[:4]
    numbers = {"spearman": rho, "low": low, "high": high, "n": rows.height}
    return {"lang": rows["lang"][0], "by": rater, "texts": None, **numbers, "cost": None}


def train(rows: pl.DataFrame, day: str, judge: str | None, *, promote: bool = False, run_id: str = "cli") -> str:
    """Train on judged texts, see `fit`, into the registry; return the model's id.

    It is promoted if it is as good as its rivals.
    """
    return model_registry.train(day, lambda: fit(rows, day, judge), run_id, promote=promote)
