"""OpenLineage: what tasks read and wrote, for Airflow's provider, which imports this module by its settings.

    [openlineage]
    extractors = pipeline.lineage.Tables
    transport = {"type": "transform", "transformer_class": "pipeline.lineage.Quiet", "transport": {"type": "file", …}}

Datasets are the tables, by the addresses of the assets: namespace `iceberg://undertone`, name `comments`. The inputs
are a task's inlets; the outputs its outlets and every table that it wrote, with rows and bytes. The rows of `runs` that
it put in place (read, kept, dropped, seconds, cost) go out as the run facet `undertone_runs`.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import attrs
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import OutputDatasetFacet, RunFacet, error_message_run
from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics
from openlineage.client.transport.transform.transform import EventTransformer

NAMESPACE = "iceberg://undertone"
FAILED = "the task failed; its log says why"


@attrs.define
class RunsFacet(RunFacet):
    """Rows of `runs`, as `record.runs` writes them."""

    rows: list[dict[str, Any]] = attrs.field(factory=list)


class Lineage(NamedTuple):
    """What the provider reads off an extractor."""

    inputs: list[InputDataset]
    outputs: list[OutputDataset]
    run_facets: dict[str, RunFacet]
    job_facets: dict[str, Any]


class Tables:
    """An extractor, in the shape that the provider asks for; it imports nothing of Airflow."""

    source_code_enabled = False  # the provider sets it; ours sends no code

    def __init__(self, operator: Any) -> None:
        self.operator = operator

    @classmethod
    def get_operator_classnames(cls) -> list[str]:
        """The operators of `@task` and `@task.sensor`."""
        return ["_PythonDecoratedOperator", "DecoratedSensorOperator"]

    def extract(self) -> Lineage:
        """At the start: inlets and outlets."""
        return self._describe([], [])

    def extract_on_complete(self, task_instance: Any) -> Lineage:
        """At the end, good or bad: what was written too."""
        task = {"dag": task_instance.dag_id, "task": task_instance.task_id, "run": task_instance.run_id}
        # a task that did not import a module wrote nothing by it, and need not import it
        sources = (("pipeline.warehouse.write", "WRITTEN"), ("pipeline.tasks.record.runs", "RECENT_ROWS"))
        rows = (getattr(sys.modules.get(module), name, []) for module, name in sources)
        writes, runs = ([row for row in part if task.items() <= row.items()] for part in rows)
        return self._describe(writes, runs)

    extract_on_failure = extract_on_complete

    def _describe(self, writes: Iterable[Mapping[str, Any]], runs: list[dict[str, Any]]) -> Lineage:
        sums = dict.fromkeys(_list_tables(self.operator.outlets), (0, 0))
        for write in writes:
            rows, size = sums.get(write["table"], (0, 0))
            sums[write["table"]] = rows + write["rows"], size + write["bytes"]
        inputs = [InputDataset(NAMESPACE, name) for name in _list_tables(self.operator.inlets)]
        outputs = []
        for name, total in sums.items():
            facet = statistics.OutputStatisticsOutputDatasetFacet(*total)
            facets: dict[str, OutputDatasetFacet] = {"outputStatistics": facet} if any(total) else {}
            outputs.append(OutputDataset(NAMESPACE, name, outputFacets=facets))
        return Lineage(inputs, outputs, {"undertone_runs": RunsFacet(runs)} if runs else {}, {})


class Quiet(EventTransformer):
    """Takes out what may quote a comment or name a person: words of exceptions, parameters and notes of runs."""

    def transform(self, event: Any) -> Any:
        """The event without them."""
        facets = getattr(getattr(event, "run", None), "facets", None) or {}
        if "errorMessage" in facets:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(FAILED, programmingLanguage="python")
        for facet in facets.values():
            if isinstance(run := getattr(facet, "dagRun", None), dict):
                run.pop("conf", None)
                run.pop("note", None)
        return event


def _list_tables(assets: Iterable[Any]) -> list[str]:
    uris = (urlsplit(getattr(asset, "uri", "")) for asset in assets)
    return [uri.path.strip("/") for uri in uris if f"{uri.scheme}://{uri.netloc}" == NAMESPACE]
