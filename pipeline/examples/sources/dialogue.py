"""Inference and dialogue: Implicatures, ImpPres, LUDWIG and PDTB (ImpScore, table 6)."""

from pathlib import Path

import polars as pl

from pipeline.examples.sources.files import PLACE, find_files, join_texts, read_elements, read_table
from pipeline.examples.sources.layout import Read, clean, finish, map_labels
from pipeline.reasons import choose_first

PROMPT = "dialogue_en"
LUDWIG_ALTERNATIVE = PROMPT
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
    return finish(rows.select(*PLACE, text=text, label=pl.lit("implicit")), PROMPT)


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
