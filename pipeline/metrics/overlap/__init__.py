"""Quality-weighted overlap metrics: how much a comment shares with the comments people wrote, where a match is worth as
much as the comment it is in (Automatic Article Commenting, section 4 and appendix B; AAC-11 to AAC-20).

With all weights 1 each metric is the established one. Where the paper can be read in more than one way (errata E11),
the reading is an option of the metric's constructor, and the signature of every score names it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any

from pipeline.metrics.overlap import bleu, cider, meteor, rouge
from pipeline.metrics.overlap.cider import References, count_documents
from pipeline.metrics.overlap.metric import Metric

METRICS: dict[str, Callable[..., Metric]] = {
    **{f"bleu_{order}": partial(bleu.bleu, order) for order in (1, 2, 3, 4)}, "meteor": meteor.meteor,
    "rouge_l": rouge.rouge_l, "cider": cider.cider, "cider_d": partial(cider.cider, variant="d"),
    "delta_bleu": bleu.delta_bleu,
}  # fmt: skip
"""What builds each metric; all but the two CIDErs, which take document frequencies first, need no arguments."""


def build_metrics(
    names: Sequence[str],
    references: References | None = None,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Metric]:
    """Build metrics by names of METRICS, with options of their constructors by the name of the metric.

    The CIDErs need `references`, as `count_documents` accepts them. ValueError for an unknown name or option, options
    of a metric that is not asked for, a CIDEr without documents, or as of the constructors. BadInput as of
    `count_documents`.
    """
    metric_options = options or {}
    if unknown := [name for name in names if name not in METRICS]:
        raise ValueError(f"no metric {unknown[0]!r}; there are {', '.join(METRICS)}")
    if unused := [name for name in metric_options if name not in names]:
        raise ValueError(f"options of {unused[0]!r}, which is not among {', '.join(names)}")
    frequencies = []
    if any(name.startswith("cider") for name in names):
        if references is None:
            raise ValueError("CIDEr needs references for its document frequencies")
        frequencies = [count_documents(references)]
    arguments = {name: frequencies if name.startswith("cider") else [] for name in names}
    return [_build_metric(name, arguments[name], metric_options.get(name, {})) for name in names]


def _build_metric(name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Metric:
    try:
        return METRICS[name](*arguments, **options)
    except TypeError as error:  # an unknown option, or a value of another type
        parameters = [*signature(METRICS[name]).parameters.values()][len(arguments) :]
        defaults = ", ".join(f"{parameter.name}={parameter.default}" for parameter in parameters)
        values = ", ".join(f"{key}={value}" for key, value in options.items())
        raise ValueError(f"{name}: found {values}; expected values for some of {defaults} (the defaults)") from error
