"""Hate speech: ToxiGen, Latent Hatred, DGHSD, ISHate and SBIC (ImpScore, table 6), and Davidson (section 7.1)."""

import ast
import re
from pathlib import Path

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.sources.files import PLACE, find_files, read_table
from pipeline.examples.sources.layout import Read, clean, finish, is_filled, map_labels, parse_numbers
from pipeline.reasons import choose_first

PROMPT = "hate_en"

_BYTES = re.compile(  # what repr() makes of bytes, and nothing else
    r"""b'(?:[ !#-&(-\[\]-~"]|\\(?:[\\'nrt]|x[0-9a-f]{2}))*'|b"(?:[ !#-\[\]-~]|\\(?:[\\"nrt]|x[0-9a-f]{2}))*\""""
)


def read_toxigen(path: Path) -> Read:
    """Read the annotated part of ToxiGen (Hartvigsen et al., 2022): `text`, `intent`, `toxicity_human`, from 1 to 5.

    Texts are the repr of Python bytes in some releases and plain in others. IMP-13: toxicity from 2 to 4, both
    included, and intent below 4 is implicit; both above 4 is explicit; any other levels are neither.
    """
    names = {"text": ("text",), "intent": ("intent",), "toxicity_human": ("toxicity_human",)}
    rows = read_table(find_files(path, "toxigen*.csv", "annotated*.csv", "*.parquet"), names)
    for level in ("intent", "toxicity_human"):
        rows = parse_numbers(rows, level, 1.0, 5.0)
    toxicity, intent = pl.col("toxicity_human"), pl.col("intent")
    levels = {
        "implicit": toxicity.is_between(2.0, 4.0) & (intent < 4.0),
        "explicit": (toxicity > 4.0) & (intent > 4.0),
        "neither": toxicity.is_not_null() & intent.is_not_null(),
    }
    label = choose_first(levels)
    texts = [_decode(file, line, text) for file, line, text in rows.select("file", "line", "text").iter_rows()]
    return finish(rows.with_columns(label=label, text=pl.Series(texts, dtype=pl.String)), PROMPT)


def _decode(file: str, line: int, text: str | None) -> str | None:
    if text is None or not text.startswith(("b'", 'b"')):
        return text
    try:
        if not _BYTES.fullmatch(text):
            raise ValueError
        return str(ast.literal_eval(text), "utf-8")
    except ValueError as error:
        message = f"{file}, line {line}: field 'text' should be a repr of UTF-8 bytes but is {text!r:.60}"
        raise BadInput(message) from error


def read_latent_hatred(path: Path) -> Read:
    """Read Latent Hatred (ElSherief et al., 2021): `post`, `class` in stage 1; `post`, `implied_statement` in stage 3.

    A row of stage 3 is an implicit post with one explanation as its explicit form; the pairs of Table 6 are these.
    Stage 1 adds the posts that stage 3 does not explain: explicit_hate is explicit, not_hate neither, and implicit_hate
    implicit without an explicit form, which the paper does not ask for.
    """
    names = {"text": ("post",)}
    optional = {"class": ("class",), "explicit": ("implied_statement",)}
    files = find_files(path, "implicit_hate_v1_stg1_posts.tsv", "implicit_hate_v1_stg3_posts.tsv", is_each_needed=True)
    rows = pl.concat([_add_stage(read_table([file], names, optional), file) for file in files])
    classes = {"implicit_hate": "implicit", "explicit_hate": "explicit", "not_hate": "neither"}
    is_stage_3 = pl.col("stage") == 3
    rows = rows.with_columns(
        clean("text", entities=True),
        clean("explicit", entities=True),
        label=pl.when(is_stage_3).then(pl.lit("implicit")).otherwise(map_labels(rows, "class", classes)),
    )
    explained = rows.filter(is_stage_3 & is_filled("explicit"))["text"].unique()
    faults = {
        "no_explanation": is_stage_3 & ~is_filled("explicit"),
        "explained_in_stage_3": ~is_stage_3 & pl.col("text").is_in(explained.implode()),
    }
    return finish(rows.with_columns(reason=choose_first(faults)))


def _add_stage(rows: pl.DataFrame, file: Path) -> pl.DataFrame:
    is_third, is_first = (not rows[name].is_null().all() for name in ("explicit", "class"))
    if is_third == is_first:
        raise BadInput(f"{file}: expected either the column 'class' or the column 'implied_statement'")
    return rows.with_columns(stage=pl.lit(3 if is_third else 1))


def read_dghsd(path: Path) -> Read:
    """Read the Dynamically Generated Hate Speech Dataset v0.2 (Vidgen et al., 2021): `acl.id`, `text`, `label`, `type`.

    The type `animosity` is abuse in an implicit or subtle manner; the other types of hate are explicit. Hate of round 1
    has no type (`notgiven`) and is dropped. Of several versions in a folder the last by name is read.
    """
    names = {"id": ("acl.id",), "text": ("text",), "label": ("label",), "type": ("type",)}
    rows = read_table(find_files(path, "Dynamically*Generated*Hate*v0.2*.csv", "*v0.2*.csv")[-1:], names)
    explicit_types = dict.fromkeys(("derogation", "dehumanization", "threatening", "support"), "explicit")
    kind = map_labels(rows, "type", {"animosity": "implicit", **explicit_types, "notgiven": "", "none": ""})
    kind = kind.replace("", None)
    hate = map_labels(rows, "label", {"hate": "hate", "nothate": "neither"})
    label = pl.when(hate == "hate").then(kind).otherwise(hate)
    return finish(rows.with_columns(label=label, item_id=pl.col("id").str.strip_chars()), PROMPT)


def read_ishate(path: Path) -> Read:
    """Read ISHate, "Adversarial" in Table 6 (Ocampo et al., 2023): `text`, `implicit_layer`, perhaps `hateful_layer`.

    `Implicit HS` is implicit, `Explicit HS` explicit, `Non-HS` neither. The 25,193 of Table 6 must be mostly the
    augmented rows in the training file.
    """
    names = {"text": ("text",), "implicit_layer": ("implicit_layer",)}
    rows = read_table(find_files(path, "ishate*.csv", "ishate*.parquet*"), names, {"hateful_layer": ("hateful_layer",)})
    labels = {"Implicit HS": "implicit", "Explicit HS": "explicit", "Non-HS": "neither"}
    layer = map_labels(rows, "implicit_layer", labels)
    hateful = map_labels(rows, "hateful_layer", {"HS": "", "Non-HS": "neither"}).replace("", None)
    return finish(rows.with_columns(label=pl.coalesce(layer, hateful)), PROMPT, entities=True)


def read_sbic(path: Path) -> Read:
    """Read the Social Bias Inference Corpus v2 (Sap et al., 2020): `post`, `offensiveYN`, `targetStereotype`.

    A row is by one reader, whose stereotype is the explicit form of a post that the reader found offensive (0.5, maybe,
    or 1, yes): a post may have several, each once. A post that is offensive to no reader is neither, once. Other rows,
    such as those of offensive posts without a group, are dropped. The files aggregated by post are not read.
    """
    names = {"text": ("post",), "offensiveYN": ("offensiveYN",), "explicit": ("targetStereotype",)}
    rows = read_table(find_files(path, "SBIC.v2.trn.csv", "SBIC.v2.dev.csv", "SBIC.v2.tst.csv"), names)
    rows = parse_numbers(rows, "offensiveYN", 0.0, 1.0).with_columns(
        clean(name, entities=True).fill_null("") for name in ("text", "explicit")
    )
    is_offensive = (pl.col("offensiveYN") >= 0.5).fill_null(value=False)
    rows = rows.with_columns(implied=is_offensive & (pl.col("explicit") != ""))
    is_harmless = pl.col("offensiveYN").max().over("text") < 0.5
    explicit = pl.when("implied").then("explicit")
    rows = rows.with_columns(
        label=choose_first({"implicit": pl.col("implied"), "neither": is_harmless}),
        is_repeated=~pl.struct("text", "implied", explicit).is_first_distinct(),
    )
    faults = {
        "blank_text": pl.col("text") == "",
        "another_reader": pl.col("implied").any().over("text") & ~pl.col("implied"),
        "no_explanation": pl.col("label").is_null() & pl.col("offensiveYN").is_not_null(),
        "same_row": pl.col("label").is_not_null() & pl.col("is_repeated"),
    }
    return finish(rows.select(*PLACE, "text", "label", explicit=explicit, reason=choose_first(faults)))


def read_davidson(path: Path) -> Read:
    """Read the tweets of Davidson et al. (2017): `tweet`, and `class`: 0 hate, 1 offensive language, 2 neither.

    A lexicon found them, so hate and offensive language count as explicit.
    """
    rows = read_table(find_files(path, "labeled_data*.csv", "*.csv"), {"text": ("tweet",), "class": ("class",)})
    label = map_labels(rows, "class", {"0": "explicit", "1": "explicit", "2": "neither"})
    return finish(rows.with_columns(label=label), entities=True)
