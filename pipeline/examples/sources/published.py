"""Readers of the published data sets of ImpScore's table 6, and of Davidson (section 7.1).

Inference and dialogue: Implicatures, ImpPres, LUDWIG, PDTB. Hate speech: ToxiGen, Latent Hatred, DGHSD, ISHate, SBIC.
Sentiment, irony and sarcasm: ABSA, SemEval-2018 task 3, Snarks, R3.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.sources.files import (
    PLACE,
    clean,
    find_files,
    finish,
    is_filled,
    join_texts,
    map_labels,
    parse_numbers,
    read_elements,
    read_table,
)
from pipeline.io.lines import parse_object, read_json_lines, read_lines, read_text
from pipeline.reasons import Read, choose_first

_SCHEMA = dict.fromkeys((*PLACE, "text", "label"), pl.String()) | {"line": pl.Int64()}


def read_semeval_irony(path: Path) -> Read:
    """Read SemEval-2018 task 3 (Van Hee et al., 2018): `Tweet index`, `Label`, `Tweet text`, by tabs, no quoting.

    Ironic tweets (1 in task A; 1, 2, 3 in task B) are implicit, the others neither. Tasks A and B label the same
    tweets, so of a folder only task A is read, with emoji if both forms exist.
    """
    files = find_files(path, *(f"*{part}*taskA{form}.txt" for part in ("train", "gold") for form in ("_emoji", "")))
    files = [file for file in files if file.with_name(f"{file.stem}_emoji.txt") not in files]
    rows = read_table(files, {"label": ("Label",), "text": ("Tweet text",)}, quoted=False)
    labels = {"0": "neither", **dict.fromkeys(("1", "2", "3"), "implicit")}
    return finish(rows.with_columns(label=map_labels(rows, "label", labels)), "irony_en", entities=True)


def read_absa(path: Path) -> Read:
    """Read reviews of SemEval-2014 task 4 with implicit sentiment marked (Li et al., 2021).

    XML of `sentence` elements with `id`, `text` and `aspectTerm`, whose `implicit_sentiment` is True or False. A
    sentence is implicit where all its marked aspects are, which gives the 933 of Table 6 exactly, and explicit where
    none is. Sentences with both kinds (507; with them the implicit would be 1,440) are dropped as `reason`.
    """
    rows = []
    for file in find_files(path, "*Implicit_Labeled.xml"):
        for number, (sentence, *inside) in enumerate(read_elements(file, "sentence"), 1):
            marks = {_parse_mark(str(file), e.line, e.attributes) for e in inside if e.tag == "aspectTerm"}
            label = " ".join(sorted(filter(None, marks))) or None
            key = f"{file.name}:{sentence.attributes.get('id', number)}"
            rows.append((str(file), sentence.line, key, join_texts(inside, "text"), label))
    is_mixed = pl.col("label") == "explicit implicit"
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    labels = {"label": pl.when(~is_mixed).then("label"), "reason": pl.when(is_mixed).then(pl.lit("mixed"))}
    return finish(frame.with_columns(**labels), "review_en")


def _parse_mark(file: str, line: int, attributes: dict[str, str]) -> str | None:
    marks = {"True": "implicit", "False": "explicit", None: None}  # aspects of conflicting polarity have none
    if (value := attributes.get("implicit_sentiment")) not in marks:
        raise BadInput(f"{file}, line {line}: field 'implicit_sentiment' should be True or False but is {value!r:.60}")
    return marks[value]


_OPTIONS = re.compile(r"(?>.*?\(a\))(?P<a>.*)\(b\)(?P<b>.*)", re.IGNORECASE | re.DOTALL)


def read_snarks(path: Path) -> Read:
    """Read Snarks of BIG-bench (Srivastava et al., 2023): two statements a row, one sarcastic, so two sentences.

    `task.json` with `examples` of `input` "(a) … (b) …" and `target_scores`; or those of BIG-Bench Hard, json or
    jsonl, with `target` "(A)". The sarcastic statement is implicit, the other neither: it is not its meaning.
    """
    rows = []
    for file in find_files(path, "task.json", "snarks*.json", "snarks*.jsonl"):
        for number, line, example in _read_examples(file):
            location = f"{file}, example {number}"
            options = _OPTIONS.match(text) if isinstance(text := example.get("input"), str) else None
            if options is None:
                raise BadInput(f"{location}: field 'input' should be '(a) … (b) …' but is {text!r:.60}")
            answer = _find_answer(location, example)
            rows += [
                (str(file), line, f"{file.name}:{number}{name}", statement, "implicit" if name == answer else "neither")
                for name, statement in options.groupdict().items()
            ]
    return finish(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), "sarcasm_en")


def _read_examples(file: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    if file.suffix == ".jsonl":
        for number, (line, example) in enumerate(read_json_lines(file), 1):
            yield number, line, example
        return
    examples = parse_object(read_text(file), file).get("examples")
    if not isinstance(examples, list) or not examples:
        raise BadInput(f"{file}: field 'examples' should be a list of examples")
    for number, example in enumerate(examples, 1):
        if not isinstance(example, dict):
            raise BadInput(f"{file}, example {number}: expected an object but found {example!r:.60}")
        yield number, 1, example


def _find_answer(location: str, example: dict[str, Any]) -> str:
    scores = example.get("target_scores", {str(example.get("target")): 1})
    right_keys = [key for key, score in scores.items() if score == 1] if isinstance(scores, dict) else []
    name = str(right_keys[0]).strip().strip("()").lower() if len(right_keys) == 1 else ""
    if name not in ("a", "b"):
        expected = "expected one answer, (a) or (b), in 'target_scores' or 'target'"
        raise BadInput(f"{location}: {expected}; found {scores!r:.60}")
    return name


def read_r3(path: Path) -> Read:
    """Read R3 (Chakrabarty et al., 2020): the same 150 utterances line by line in two files of a folder."""
    names = ("non-sarcastic.txt", "human-sarcasm.txt")
    if path.is_file():
        raise BadInput(f"{path}: expected a folder with {' and '.join(names)}")
    find_files(path, *names, is_each_needed=True)
    explicit, implicit = ([line.strip() for _, line in read_lines(path / name)] for name in names)
    if len(implicit) != len(explicit):
        raise BadInput(f"{path / names[1]}: expected {len(explicit)} lines as in {names[0]}, found {len(implicit)}")
    rows = pl.DataFrame({"text": implicit, "explicit": explicit}).with_row_index("line", 1)
    place = {"file": pl.lit(str(path / names[1])), "item_id": pl.format(names[1] + ":{}", "line")}
    reason = choose_first({"no_explanation": pl.col("explicit") == ""})
    return finish(rows.with_columns(**place, label=pl.lit("implicit"), reason=reason))


DIALOGUE_PROMPT = "dialogue_en"
LUDWIG_ALTERNATIVE = DIALOGUE_PROMPT
"""LUDWIG's explicit forms are read from its labels, as Table 6 describes them; its column "Generation" and Table 7
show forms written by GPT-3.5. For those, ask about LUDWIG by name, with this prompt."""

_UTTERANCES = {"context": ("Context utterance", "context"), "response": ("Response utterance", "response")}


def _join_dialogue(question: str, answer: str) -> pl.Expr:
    first, second = clean(question), clean(answer)
    return pl.when((first != "") & (second != "")).then(pl.format("- {} - {}", first, second)).otherwise(pl.lit(""))


def _is_blank(column: str) -> pl.Expr:
    return clean(column).fill_null("") == ""


def read_implicatures(path: Path) -> Read:
    """Read conversational implicatures (George & Mamidi, 2020): `Context utterance`, `Response utterance`.

    Also as tasksource publishes them (Sileo, 2023): `context`, `response`. Every dialogue is implicit. The implicature
    that their makers wrote is not used, as Table 6 says: a model is asked for the explicit form.
    """
    rows = read_table(find_files(path, "*mplicature*.csv", "*mplicature*.tsv"), _UTTERANCES)
    text = _join_dialogue("context", "response")
    return finish(rows.select(*PLACE, text=text, label=pl.lit("implicit")), DIALOGUE_PROMPT)


def read_ludwig(path: Path) -> Read:
    """Read LUDWIG (George & Mamidi, 2020; Ruis et al.): `Implicature`, begun with yes or no, is explicit."""
    names = {**_UTTERANCES, "meaning": ("Implicature",)}
    rows = read_table(find_files(path, "*_conversational_implicatures.csv", "*ludwig*.csv"), names)
    texts = {"text": _join_dialogue("context", "response"), "explicit": _join_dialogue("context", "meaning")}
    reason = choose_first({"no_explanation": _is_blank("meaning")})
    return finish(rows.select(*PLACE, **texts, label=pl.lit("implicit"), reason=reason))


def read_imppres(path: Path) -> Read:
    """Read ImpPres (Jeretic et al., 2020): its files gradable_adjective, gradable_verb and modals of implicatures.

    An implicature is entailed by pragmatics (`gold_label_prag`) and neutral by logic (`gold_label_log`): 200 rows a
    file, in two directions (`spec_relation`). Table 6 has 100 a file, and the two pairs of Table 7 are of
    implicature_PtoN: the sentence with the weaker word implies that the stronger one does not hold. implicature_NtoP
    has the same pairs reversed, which would make each sentence implicit and explicit: dropped as `reversed`.
    """
    names = ("sentence1", "sentence2", "gold_label_log", "gold_label_prag", "spec_relation")
    files = find_files(path, "gradable_adjective.jsonl", "gradable_verb.jsonl", "modals.jsonl", is_each_needed=True)
    rows = read_table(files, {name: (name,) for name in names})
    verdicts = {name: name for name in ("entailment", "neutral", "contradiction")}
    logic, pragmatics = (map_labels(rows, f"gold_label_{kind}", verdicts) for kind in ("log", "prag"))
    is_implicature = ((logic == "neutral") & (pragmatics == "entailment")).fill_null(value=False)
    is_forward = (pl.col("spec_relation") == "implicature_PtoN").fill_null(value=False)
    faults = {"no_implicature": ~is_implicature, "reversed": ~is_forward, "no_explanation": _is_blank("sentence2")}
    texts = {"text": "sentence1", "explicit": "sentence2"}
    return finish(rows.select(*PLACE, **texts, label=pl.lit("implicit"), reason=choose_first(faults)))


_ENTAILS = {
    **dict.fromkeys(("yes", "true", "1", "entailment", "entailing"), "implicit"),
    **dict.fromkeys(("no", "false", "0", "unknown", "contradiction", "not entailing", "not_entailment"), "neither"),
}


def read_pdtb(path: Path) -> Read:
    """Read restatement pairs of the Penn Discourse Treebank judged for entailment (Tonelli & Cabrio, 2012).

    The layout of the RTE challenges: `pair` elements with `id`, `entailment` (or `value`), `t` and `h`; or a table
    with `text`, `hypothesis` and `entailment`. An entailing text is implicit and its hypothesis the explicit form;
    other pairs are dropped as `not_entailing`. The data set is not public: this layout is an assumption.
    """
    names = {"text": ("text", "t"), "hypothesis": ("hypothesis", "h"), "entailment": ("entailment", "label", "value")}
    files = find_files(path, "*.xml", "*.csv", "*.tsv")
    frames = [_read_rte(file) if file.suffix.lower() == ".xml" else read_table([file], names) for file in files]
    rows = pl.concat(frames)
    label = map_labels(rows, "entailment", _ENTAILS)
    reason = choose_first({"not_entailing": label == "neither", "no_explanation": _is_blank("hypothesis")})
    return finish(rows.select(*PLACE, "text", explicit="hypothesis", label=label, reason=reason))


def _read_rte(file: Path) -> pl.DataFrame:
    rows = []
    for number, (pair, *inside) in enumerate(read_elements(file, "pair"), 1):
        texts = {tag: join_texts(inside, tag) for tag in ("t", "h")}
        verdict = pair.attributes.get("entailment", pair.attributes.get("value"))
        key = f"{file.name}:{pair.attributes.get('id', number)}"
        rows.append((str(file), pair.line, key, texts["t"], texts["h"], verdict))
    schema = dict.fromkeys((*PLACE, "text", "hypothesis", "entailment"), pl.String())
    return pl.DataFrame(rows, schema={**schema, "line": pl.Int64()}, orient="row")


HATE_PROMPT = "hate_en"

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
    levels = {"implicit": toxicity.is_between(2.0, 4.0) & (intent < 4.0), "explicit": (toxicity > 4.0) & (intent > 4.0)}
    label = choose_first(levels | {"neither": toxicity.is_not_null() & intent.is_not_null()})
    texts = [_decode(file, line, text) for file, line, text in rows.select("file", "line", "text").iter_rows()]
    return finish(rows.with_columns(label=label, text=pl.Series(texts, dtype=pl.String)), HATE_PROMPT)


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
    kinds = {"animosity": "implicit", **explicit_types, "notgiven": "", "none": ""}
    kind = map_labels(rows, "type", kinds).replace("", None)
    hate = map_labels(rows, "label", {"hate": "hate", "nothate": "neither"})
    label = pl.when(hate == "hate").then(kind).otherwise(hate)
    return finish(rows.with_columns(label=label, item_id=pl.col("id").str.strip_chars()), HATE_PROMPT)


def read_ishate(path: Path) -> Read:
    """Read ISHate, "Adversarial" in Table 6 (Ocampo et al., 2023): `text`, `implicit_layer`, perhaps `hateful_layer`.

    `Implicit HS` is implicit, `Explicit HS` explicit, `Non-HS` neither. The 25,193 of Table 6 must be mostly the
    augmented rows in the training file.
    """
    names = {"text": ("text",), "implicit_layer": ("implicit_layer",)}
    rows = read_table(find_files(path, "ishate*.csv", "ishate*.parquet*"), names, {"hateful_layer": ("hateful_layer",)})
    layers = {"Implicit HS": "implicit", "Explicit HS": "explicit", "Non-HS": "neither"}
    layer = map_labels(rows, "implicit_layer", layers)
    hateful = map_labels(rows, "hateful_layer", {"HS": "", "Non-HS": "neither"}).replace("", None)
    return finish(rows.with_columns(label=pl.coalesce(layer, hateful)), HATE_PROMPT, entities=True)


def read_sbic(path: Path) -> Read:
    """Read the Social Bias Inference Corpus v2 (Sap et al., 2020): `post`, `offensiveYN`, `targetStereotype`.

    A row is by one reader, whose stereotype is the explicit form of a post that the reader found offensive (0.5, maybe,
    or 1, yes): a post may have several, each once. A post that is offensive to no reader is neither, once. Other rows,
    such as those of offensive posts without a group, are dropped. The files aggregated by post are not read.
    """
    names = {"text": ("post",), "offensiveYN": ("offensiveYN",), "explicit": ("targetStereotype",)}
    rows = read_table(find_files(path, "SBIC.v2.trn.csv", "SBIC.v2.dev.csv", "SBIC.v2.tst.csv"), names)
    texts = [clean(name, entities=True).fill_null("") for name in ("text", "explicit")]
    rows = parse_numbers(rows, "offensiveYN", 0.0, 1.0).with_columns(texts)
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
