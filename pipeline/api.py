"""The public functions, over plain lists and frames: `import pipeline` gives them.

Each imports what it needs when it is called. All else is private by convention and may change in any version.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.errors import BadInput

if TYPE_CHECKING:
    import polars as pl


def implicitness(texts: Sequence[str], model: str | None = None) -> "list[float | None]":
    """Implicitness of each text by ImpScore, from 0, it says what it means, to 2; None where there is no text.

    Args:
        texts: in any language; the model was made for English, and has a head for Chinese.
        model: folder or id of a model; the shipped one by default.

    >>> import pipeline
    >>> pipeline.implicitness(["Please be quiet, we have to get up at five.", ""])
    [0.446716, None]
    """
    import polars as pl

    from pipeline.tasks.impscore import scoring

    scored = scoring.add_scores(pl.DataFrame({"text": texts}, schema={"text": pl.String}), "text", model)
    return scored["implicitness"].to_list()


def distance(first: Sequence[str], second: Sequence[str], model: str | None = None) -> "list[float | None]":
    """Pragmatic distance of texts row by row: 0 where they mean the same; None where one holds no text.

    Raises:
        BadInput: there are not as many second texts as first ones.

    >>> import pipeline
    >>> pipeline.distance(["Some of us have an alarm set for five."], ["Please be quiet."])
    [1.045816]
    """
    import polars as pl

    from pipeline.tasks.impscore import rank

    if len(first) != len(second):
        raise BadInput(f"second: expected {len(first)} texts, as many as first, found {len(second)}")
    rows = pl.DataFrame({"first": first, "second": second}, schema={"first": pl.String, "second": pl.String})
    return rank.add_distances(rows, "first", "second", model)["pragmatic_distance"].to_list()


def rank(groups: Mapping[str, Sequence[str]], model: str | None = None) -> dict[str, float]:
    """How far implicitness rises over graded groups: mean Kendall's tau and Spearman's rho.

    Args:
        groups: sentences of each group by its name, from the most explicit to the most implicit.
        model: folder or id of a model; the shipped one by default.

    >>> import pipeline
    >>> pipeline.rank({"noise": ["Be quiet.", "It is rather late.", "Some of us have an alarm set for five."]})
    {'kendall_tau': 1.0, 'spearman_rho': 1.0, 'group_count': 1}
    """
    import polars as pl

    from pipeline.examples.impscore.groups import majority_language
    from pipeline.metrics.impscore.ranking import average_correlations
    from pipeline.tasks.impscore import scoring

    rows = [(name, level, text) for name, texts in groups.items() for level, text in enumerate(texts, 1)]
    sentences = pl.DataFrame(rows, schema={"group": pl.String, "level": pl.Int64, "text": pl.String}, orient="row")
    scored = scoring.add_scores(sentences, "text", model, lang=majority_language())
    return dict(average_correlations(scored.with_columns(value="implicitness"))._asdict())


def overlap(
    candidates: Sequence[str], references: Sequence[Sequence[str]], weights: Sequence[Sequence[float]] | None = None,
    metrics: Sequence[str] = ("bleu_1", "meteor", "rouge_l"), tokenize: str = "none",
) -> dict[str, float]:  # fmt: skip
    """Corpus scores of candidates against their references, which may have weights in [0, 1].

    Args:
        candidates: texts.
        references: several texts for each candidate.
        weights: of each reference; all one by default.
        metrics: bleu_1 … bleu_4, meteor, rouge_l, cider, cider_d, delta_bleu.
        tokenize: none (what blanks divide), jieba or chars.

    >>> import pipeline
    >>> pipeline.overlap(["so late"], [["so late again", "fine"]], weights=[[0.8, 0.4]])
    {'bleu_1': 0.8, 'meteor': 0.517241, 'rouge_l': 0.617722}
    """
    from pipeline.metrics import overlap as metrics_of
    from pipeline.metrics.overlap import scoring
    from pipeline.tasks.commenting.overlap import load_tokenizer

    cut = load_tokenizer(tokenize)
    words = [[cut(text) for text in texts] for texts in references]
    rows = scoring.measure(metrics_of.build_metrics(metrics, words), [cut(text) for text in candidates], words, weights)
    return dict(zip(metrics, rows["score"].round(6), strict=True))


def ndd(one: str, other: str, model: str = "count", lang: str | None = None) -> float:
    """Neighbouring Distribution Divergence of two sentences that share words, from 0 for the same to 1.

    Args:
        one: a sentence.
        other: another one.
        model: a masked language model, a folder or NAME@COMMIT; `count`, counts of neighbours, for trying out.
        lang: en or zh; told by the script otherwise.

    >>> import pipeline
    >>> round(pipeline.ndd("the soup is hot", "the soup is cold"), 3)
    0.118
    """
    import polars as pl

    from pipeline.metrics.ndd.distance import distances
    from pipeline.tasks.ndd import masked_lm
    from pipeline.tasks.ndd.systems import choose_model_lang
    from pipeline.text.language import detect_language

    lang = lang or choose_model_lang(str(pl.DataFrame({"text": f"{one} {other}"}).select(detect_language()).item()))
    first, second = (
        [word for words in masked_lm.tokenize_sentences([text], lang) for word in words] for text in (one, other)
    )
    return float(distances(masked_lm.load_model(model, lang).model, [first], [second])[0])


def compress(texts: Sequence[str], ratio: float, model: str = "count") -> list[str | None]:
    """Texts without the words whose loss changes what is expected of the others least.

    Args:
        texts: in English or Chinese.
        ratio: share of the words to keep, above 0 and at most 1.
        model: as of `ndd`.

    >>> import pipeline
    >>> pipeline.compress(["The old shop, which nobody liked, is shut."], ratio=0.5)
    ['The old shop is shut.']
    """
    import polars as pl

    from pipeline.score.compress.search import Search
    from pipeline.tasks.ndd import systems

    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    method = systems.Method(search=Search(ratio=ratio))
    return systems.compress_texts(rows, "text", method, model)["compressed"].to_list()


def agreement(labels: Sequence[Sequence[Any]]) -> dict[str, float]:
    """How far raters agree: Fleiss' kappa, and Krippendorff's alpha for nominal values.

    Args:
        labels: of each item a label a rater, None where one gave none; Fleiss' kappa leaves such items out.

    Raises:
        BadInput: an item has more or fewer labels than the first.

    >>> import pipeline
    >>> pipeline.agreement([["yes", "yes", "no"], ["no", "no", "no"], ["yes", "yes", "yes"]])
    {'fleiss': 0.55, 'krippendorff': 0.6}
    """
    import numpy as np

    from pipeline.metrics.labelling.agreement import measure

    if odd := [item for item, row in enumerate(labels) if len(row) != len(labels[0])]:
        raise BadInput(f"labels[{odd[0]}]: expected {len(labels[0])} labels, None where one is missing, "
                       f"found {len(labels[odd[0]])}")  # fmt: skip
    numbers: dict[Any, int] = {None: -1}
    for row in labels:
        for label in row:
            numbers.setdefault(label, len(numbers) - 1)
    codes = np.array([[numbers[label] for label in row] for row in labels], np.int64)
    measures = {"fleiss": "fleiss_kappa", "krippendorff": "alpha_nominal"}
    return {name: round(measure(measures[name], codes), 6) for name in measures}


def tokenize(texts: Sequence[str], tokenizer: str = "jieba") -> list[list[str]]:
    """Words of each text: jieba or rjieba for Chinese, nltk or stanza for English.

    >>> import pipeline
    >>> pipeline.tokenize(["我们明天见"])
    [['我们', '明天', '见']]
    """
    from pipeline.text import segment

    cut = segment.load_tokenizer(tokenizer).cut
    return [segment.split_words(text, cut=cut) for text in texts]


def scan(table: str) -> "pl.LazyFrame":
    """The rows of a table as a lazy polars frame; `undertone tables` names them.

    >>> import pipeline
    >>> pipeline.scan("comments").collect().height
    0
    """
    from pipeline import warehouse

    return warehouse.scan(table)


def query(sql: str, values: Sequence[Any] = ()) -> "pl.DataFrame":
    """The rows of one select in DuckDB's dialect, over tables and views.

    >>> import pipeline
    >>> pipeline.query("select count(*) as n from comments where source = ?", ["weibo"]).to_dicts()
    [{'n': 0}]
    """
    from pipeline import warehouse

    return warehouse.query(sql, list(values))
