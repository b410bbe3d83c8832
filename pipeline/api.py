"""The public functions, over plain lists and frames: `import pipeline` gives them.

Each imports what it needs when it is called, and names the extra to install if a package is absent. All else is
private by convention and may change in any version.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.errors import BadInput, check_name
from pipeline.explanations import name_extra

if TYPE_CHECKING:
    import polars as pl


def _check_texts(kind: Any = str, /, **lists: Any) -> None:
    for name, texts in lists.items():
        if isinstance(texts, str) or not isinstance(texts, Collection):  # an iterator is read once alone
            raise BadInput(f"{name}: expected a list of texts, got {type(texts).__name__}")
        for index, text in enumerate(texts):
            if not isinstance(text, kind):
                raise BadInput(f"{name}[{index}]: expected a text, got {type(text).__name__}")


def _build_rows(**columns: Sequence[str | None]) -> "pl.DataFrame":
    import polars as pl

    _check_texts(str | None, **columns)
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


@name_extra()
def implicitness(texts: Sequence[str], model: str | None = None) -> "list[float | None]":
    """Score the implicitness of texts by ImpScore, from 0 to 2; None where there is no text.

    At 0 a text says what it means. The model was made for English, and has a head for Chinese. `model` is the folder or
    id of a model, here and below; the shipped one by default.

    >>> import pipeline
    >>> pipeline.implicitness(["Please be quiet, we have to get up at five.", ""])
    [0.869034, None]
    """
    from pipeline.tasks.impscore import scoring

    return scoring.add_scores(_build_rows(text=texts), "text", model)["implicitness"].to_list()


@name_extra()
def interpret(texts: Sequence[str], model: str | None = None, reference: str | None = None) -> "list[dict[str, Any]]":
    """Score texts as `implicitness` does, with the percentile and the band of each score.

    The percentile is among the scores of a reference corpus of the same language: the shipped sample, or the name of
    one of `build_reference`. The band is outright, indirect, hinted or veiled. Both are None without a reference.

    >>> import pipeline
    >>> pipeline.interpret(["Please be quiet, we have to get up at five."])
    [{'implicitness': 0.869034, 'percentile': 33.8, 'band': 'indirect'}]
    """
    from pipeline.tasks.impscore import references

    corpus = references.load_reference(model, reference)
    scores = references.add_readings(_build_rows(text=texts), "text", model, corpus)
    return scores.drop("text", "signature").to_dicts()


@name_extra()
def explain(texts: Sequence[str], model: str | None = None) -> "list[list[tuple[str, float]]]":
    """Measure which words carry the implicitness of texts: each with the score minus that of the text without it.

    Chinese is split by jieba. A text of one word has none; neighbours in a text of more than 64 words count as one.

    >>> import pipeline
    >>> pipeline.explain(["Be quiet."])  # doctest: +ELLIPSIS
    [[('Be', -0.9755...), ('quiet', -0.6384...), ('.', -0.0627...)]]
    """
    from pipeline.tasks.impscore import references, scoring

    scores = scoring.add_scores(_build_rows(text=texts), "text", model)
    words = references.add_words(scores, "text", model)["words"].to_list()
    return [[(part["word"], part["change"]) for part in parts or ()] for parts in words]


@name_extra()
def build_reference(texts: Sequence[str], name: str, model: str | None = None) -> dict[str, int]:
    """Build a reference of texts, for `interpret` and `score implicitness --reference`; return texts by language.

    A language needs at least 100 texts. It belongs to one model, and is kept in the home.

    >>> import pipeline
    >>> pipeline.build_reference(["It is late.", "Some of us have an alarm set for five."] * 50, "evening")
    {'en': 100}
    """
    from pipeline.tasks.impscore import references

    reference = references.build_reference(texts, name, model, source=f"{len(texts):,} texts")
    references.write_reference(reference)
    return {lang: scale.text_count for lang, scale in reference.scales.items()}


@name_extra()
def distance(first: Sequence[str], second: Sequence[str], model: str | None = None) -> "list[float | None]":
    """Measure the pragmatic distance of texts row by row: 0 where they mean the same; None where one has no text.

    >>> import pipeline
    >>> pipeline.distance(["Some of us have an alarm set for five."], ["Please be quiet."])
    [1.050959]
    """
    from pipeline.tasks.impscore import rank

    if len(first) != len(second):
        raise BadInput(f"second: expected {len(first)} texts, as many as first, found {len(second)}")
    rows = _build_rows(first=first, second=second)
    return rank.add_distances(rows, "first", "second", model)["pragmatic_distance"].to_list()


@name_extra()
def rank(groups: Mapping[str, Sequence[str]], model: str | None = None) -> dict[str, float]:
    """Measure how implicitness rises over graded groups: mean Kendall's tau and Spearman's rho.

    `groups` has the sentences of each group by its name, from the most explicit to the most implicit.

    >>> import pipeline
    >>> pipeline.rank({"noise": ["Be quiet.", "It is rather late.", "Some of us have an alarm set for five."]})
    {'kendall_tau': 1.0, 'spearman_rho': 1.0, 'group_count': 1}
    """
    import polars as pl

    from pipeline.examples.impscore.groups import find_language
    from pipeline.io.visible import is_blank
    from pipeline.metrics.impscore.studies import average_correlations
    from pipeline.tasks.impscore import scoring

    if not isinstance(groups, Mapping):
        raise BadInput(f"groups: expected lists of texts by name, got {type(groups).__name__}")
    _check_texts(**{f"groups[{name!r}]": texts for name, texts in groups.items()})
    if not groups:
        raise BadInput("groups: expected at least one group, found none")
    for name, texts in groups.items():
        if not 1 < len(texts) == len(set(texts)) or any(map(is_blank, texts)):
            raise BadInput(f"groups[{name!r}]: expected at least two texts, all different, none blank")
    rows = [(name, level, text) for name, texts in groups.items() for level, text in enumerate(texts, 1)]
    sentences = pl.DataFrame(rows, schema={"group": pl.String, "level": pl.Int64, "text": pl.String}, orient="row")
    scored = scoring.add_scores(sentences, "text", model, lang=find_language())
    return dict(average_correlations(scored.with_columns(value="implicitness"))._asdict())


def judge(
    texts: Sequence[str],
    llm: "str | Callable[[str, str], str]",
    contexts: Sequence[str | None] | None = None,
    mode: str = "scale",
    max_cost: float | None = None,
) -> "list[float | None]":
    """Have a language model judge how implicit texts are: 0 to 4, or log-odds where texts are compared (`pairwise`).

    Args:
        texts: to judge; one without text gets None.
        llm: name of a model at the service of UNDERTONE_LLM_URL, or a function from instructions and question to an
            answer.
        contexts: what each text answers or is about, None where there is nothing.
        mode: scale or pairwise.
        max_cost: USD at most.

    >>> import pipeline
    >>> pipeline.judge(["It is late.", ""], lambda instructions, question: '{"score": 2}')
    [2.0, None]
    """
    from uuid import uuid4

    from pipeline import warehouse
    from pipeline.tasks import asking
    from pipeline.tasks.judging import judge as work
    from pipeline.tasks.judging.modes import Plan

    backgrounds = [None] * len(texts) if contexts is None else contexts
    if len(backgrounds) != len(texts):
        raise BadInput(f"contexts: expected {len(texts)}, as many as texts, found {len(backgrounds)}")
    rows = _build_rows(text=texts, context=backgrounds)
    plan = Plan(mode=mode, repeats=3 if isinstance(llm, str) else 1)
    if isinstance(llm, str):
        warehouse.create()
        params, endpoint = work.choose_params(plan, None), asking.find_endpoint()
        options = asking.Options(llm, params=params, max_cost=max_cost, endpoint=endpoint, run_id=f"api-{uuid4().hex}")
        ask = work.ask_service(options)
    else:
        options, ask = asking.Options("function"), work.ask_function(llm)
    return work.judge(rows, plan, options, ask).rows[plan.metric].to_list()


@name_extra()
def distil(texts: Sequence[str], values: Sequence[float | None], out: str) -> dict[str, float]:
    """Train the scorer on judged texts into the folder `out`, and return how far it agrees with the judge.

    `values` are those of `judge`, one for each text. At least 50 texts of a language are needed. The result has, for
    each language, Spearman's correlation on texts that the model did not see. Other functions take `out` as `model`.

    >>> import pipeline
    >>> pipeline.distil(texts, pipeline.judge(texts, "gpt-4o-mini"), "mine")  # doctest: +SKIP
    {'en': 0.58}
    """
    from pathlib import Path

    from pipeline import warehouse
    from pipeline.tasks.calibration import distillation
    from pipeline.tasks.record import model_registry

    _check_texts(str | None, texts=texts)
    if len(values) != len(texts):
        raise BadInput(f"values: expected {len(texts)}, as many as texts, found {len(values)}")
    warehouse.create()
    rows = distillation.select_judged(distillation.build_rows(texts, values), "texts")
    model_registry.train_into(Path(out), lambda: distillation.fit(rows))
    return dict(distillation.measure_model(rows, out).select("lang", "spearman").iter_rows())


def overlap(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    weights: Sequence[Sequence[float]] | None = None,
    metrics: Sequence[str] = ("bleu_1", "meteor", "rouge_l"),
    tokenize: str = "none",
) -> dict[str, float]:
    """Compute corpus scores of candidates against their references.

    Args:
        candidates: texts.
        references: several texts for each candidate.
        weights: of each reference, in [0, 1]; all one by default.
        metrics: bleu_1 … bleu_4, meteor, rouge_l, cider, cider_d, delta_bleu.
        tokenize: none (blanks divide words), jieba or chars.

    >>> import pipeline
    >>> pipeline.overlap(["so late"], [["so late again", "fine"]], weights=[[0.8, 0.4]])
    {'bleu_1': 0.8, 'meteor': 0.517241, 'rouge_l': 0.617722}
    """
    from pipeline.metrics import overlap as metrics_of
    from pipeline.metrics.overlap import scoring
    from pipeline.tasks.commenting.overlap import load_tokenizer

    _check_texts(candidates=candidates, metrics=metrics)
    _check_texts(**{f"references[{index}]": texts for index, texts in enumerate(references)})
    cut = load_tokenizer(tokenize)
    words = [[cut(text) for text in texts] for texts in references]
    rows = scoring.measure(metrics_of.build_metrics(metrics, words), [cut(text) for text in candidates], words, weights)
    return dict(zip(metrics, rows["score"].round(6), strict=True))


@name_extra()
def ndd(
    one: str,
    other: str,
    model: str = "count",
    lang: str | None = None,
    divergence: str = "hellinger",
    weights: str = "mean",
) -> float:
    """Compute the Neighbouring Distribution Divergence of two sentences that share words: 0 for the same, up to 1.

    Of sentences that share no word, what is expected before and behind them is compared. It is 0 there if the model
    expects the same of both, as counts do that know neither word.

    Args:
        one: a sentence.
        other: another one.
        model: a masked language model: a folder, NAME@COMMIT, or for trials `count`, which counts neighbours.
        lang: en or zh; by default the script decides.
        divergence: hellinger, kl or kl_reversed; the last two have no upper bound.
        weights: mean, sum or distance, of the words that both sentences have.

    >>> import pipeline
    >>> round(pipeline.ndd("the soup is hot", "the soup is cold"), 3)
    0.161
    """
    import polars as pl

    from pipeline.metrics.ndd.distance import check_options, distances
    from pipeline.tasks.ndd import masked_lm
    from pipeline.tasks.ndd.systems import choose_model_lang
    from pipeline.text.language import detect_language

    check_options(divergence, weights)
    if lang:
        check_name("lang", lang, masked_lm.LANGS)
    for name, text in {"one": one, "other": other}.items():
        if not isinstance(text, str) or not text.strip():
            raise BadInput(f"{name}: expected a text, got {type(text).__name__ if text else 'none'}")
    lang = lang or choose_model_lang(str(pl.DataFrame({"text": f"{one} {other}"}).select(detect_language()).item()))
    sentences = (masked_lm.tokenize_sentences([text], lang) for text in (one, other))
    first, second = ([word for words in sentence for word in words] for sentence in sentences)
    lm, options = masked_lm.load_model(model, lang).model, {"divergence": divergence, "weights": weights}
    return float(distances(lm, [first], [second], **options)[0])  # type: ignore[arg-type]


@name_extra()
def compress(
    texts: Sequence[str],
    ratio: float,
    model: str = "count",
    divergence: str = "kl",
    weights: str = "balanced",
    spans: str = "paper",
) -> list[str | None]:
    """Compress English or Chinese texts: drop the words whose loss changes the expectation of the others least.

    `ratio` is the share of the words to keep, above 0 and at most 1; `model` and `divergence` as in `ndd`.
    `weights` and `spans` are those of `undertone ndd compress`.

    >>> import pipeline
    >>> pipeline.compress(["The old shop, which nobody liked, is shut."], ratio=0.6)
    ['The old shop, is shut.']
    """
    from pipeline.score.compress.search import Search
    from pipeline.tasks.ndd import systems

    distance = systems.DistanceOptions(divergence=divergence, weighting=weights)  # type: ignore[arg-type]
    method = systems.Method(search=Search(ratio=ratio, spans=spans), distance=distance)
    return systems.compress_texts(_build_rows(text=texts), "text", method, model)["compressed"].to_list()


def agreement(labels: Sequence[Sequence[Any]]) -> dict[str, float]:
    """Measure how far raters agree: Fleiss' kappa, and Krippendorff's alpha for nominal values.

    `labels` has for each item the labels of all raters, None where one is missing; Fleiss' kappa leaves such items out.

    >>> import pipeline
    >>> pipeline.agreement([["yes", "yes", "no"], ["no", "no", "no"], ["yes", "yes", "yes"]])
    {'fleiss': 0.55, 'krippendorff': 0.6}
    """
    import numpy as np

    from pipeline.metrics.labelling.agreement import measure

    if not len(labels) or len(labels[0]) < 2:
        raise BadInput("labels: expected at least one item, with the labels of two raters or more")
    numbers: dict[Any, int] = {None: -1}
    for item, row in enumerate(labels):
        if len(row) != len(labels[0]):
            expected = f"expected {len(labels[0])} labels, None where one is missing"
            raise BadInput(f"labels[{item}]: {expected}, found {len(row)}")
        for label in row:
            if isinstance(label, float) and np.isnan(label):  # as in a column of numbers
                raise BadInput(f"labels[{item}]: expected labels, None where one is missing, found {label}")
            numbers.setdefault(label, len(numbers) - 1)
    codes = np.array([[numbers[label] for label in row] for row in labels], np.int64)
    measures = {"fleiss": "fleiss_kappa", "krippendorff": "alpha_nominal"}
    return {name: round(measure(measures[name], codes), 6) for name in measures}


@name_extra()
def tokenize(texts: Sequence[str], tokenizer: str = "jieba") -> list[list[str]]:
    """Split each text into words: jieba or rjieba for Chinese, nltk or stanza for English.

    >>> import pipeline
    >>> pipeline.tokenize(["我们明天见"])
    [['我们', '明天', '见']]
    """
    from pipeline.text import segment

    _check_texts(texts=texts)
    cut = segment.load_tokenizer(tokenizer).cut
    return [segment.split_words(text, cut=cut) for text in texts]


def scan(table: str) -> "pl.LazyFrame":
    """Scan a table as a lazy polars frame; `undertone tables` lists the tables.

    >>> import pipeline
    >>> pipeline.scan("comments").collect().height
    0
    """
    from pipeline import warehouse

    return warehouse.scan(table)


def query(sql: str, values: Sequence[Any] = ()) -> "pl.DataFrame":
    """Query tables and views with one select in DuckDB's dialect.

    >>> import pipeline
    >>> pipeline.query("select count(*) as n from comments where source = ?", ["weibo"]).to_dicts()
    [{'n': 0}]
    """
    from pipeline import warehouse

    return warehouse.query(sql, list(values))
