"""Measure semantic distance by NDD: context shift of comments, compressions, tests of the measure, and a page.

1. Choose the masked language model: the model of `UNDERTONE_MASKED_LM`, an encoder adapted to the corpus, or word
   counts of the corpus.
2. Score how much the context of a comment changes the words that the model expects in it (CSD, section 1).
3. Compress a data set with the named systems, at the ratio of people's compressions (NDD, section 4).
4. If *People* is set, people grade compressions (appendix F).
5. Test the distance (section 3), the dropped words in syntax trees, and predicate detection (section 5).

The DAG reads `comments`, `articles` and `scores`. It writes `models`, `evaluations`, `scores`, `compressions`,
`label_tasks`, `labels`, `studies` and `<home>/reports/ndd-<day>.html`. If you name no data set, pairs or treebank, the
DAG uses those of the sample.

**Triage.**

- *BadInput* in `check` names the parameter, or the row and the field of the file. Nothing was computed.
- *Missing* in `check`: a hub model was not fetched; set HF_HUB_OFFLINE=0 once.
- Numbers from counts (`count:` in a signature) show that the pipeline runs. They are not a result.
"""

from typing import Any

from airflow.sdk import Param, dag, task

from dag_assets import MODELS, PAGES, tables
from dag_defaults import DAY, GPU, Tag, ask_people, build, check_due, param, resolve_day, tool_param

_TEXT: dict[str, Any] = {"default": None, "type": ["null", "string"]}
_SYSTEMS = ["ndd", "ndd_sc", "fast_ndd", "fast_ndd_sc", "ppl_deleter", "ppl_deleter_sc", "cosine", "bertscore"]
_ITEMS = {"type": "string", "enum": [*_SYSTEMS, "cosine_sc", "bertscore_sc"]}
_LIST: dict[str, Any] = {"type": "array", "items": _ITEMS, "uniqueItems": True}
_DIVERGENCES = [None, "hellinger", "kl", "kl_reversed"]
_DIVERGENCE = "Of two expectations of a word; empty: the paper's, hellinger for pairs and contexts, else kl"
_FORMATS = ["own", "google", "broadcast", "colloquial"]
_NAME: dict[str, Any] = {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,29}$"}
_SHARE: dict[str, Any] = {"default": None, "type": ["null", "number"], "exclusiveMinimum": 0, "maximum": 1}
_WEIGHTS = ["balanced", "exponential", "printed", "released"]
_PAIR_WEIGHTS = "What shared words count in pairs of sentences and in comments with contexts"
_ADAPT = "Adapt the encoder to the corpus with this profile, and use this model; empty: use the model above"
PARAMS = {
    "day": DAY,
    "model": Param(**_TEXT, title="Model", description="Folder, NAME@COMMIT or count; empty: UNDERTONE_MASKED_LM"),
    "adapt": Param(None, enum=[None, "embedded", "large"], title="Adapt", description=_ADAPT),
    "data": Param(**_TEXT, title="Data set", description="Sentences with compressions; empty: the sample"),
    "format": Param("own", enum=_FORMATS, title="Format", description="Format of the data set"),
    "source": Param("sample", **_NAME, title="Name", description="Name of the data set in the tables"),
    "split": Param(**_TEXT, title="Part", description="Part of the data set, such as test; empty: all"),
    "syntax": Param(**_TEXT, title="Trees", description="CoNLL-U file with the sentences of the data set"),
    "systems": Param(
        _SYSTEMS, **_LIST, title="Systems", description="Next to copying, drop head, drop tail and random"
    ),
    "ratio": Param(**_SHARE, title="Ratio", description="Share of words to keep; empty: the share that people keep"),
    "divergence": Param(None, enum=_DIVERGENCES, title="Divergence", description=_DIVERGENCE),
    "weights": param("balanced", "Weights", "What words near and far from a dropped span count", enum=_WEIGHTS),
    "spans": param("paper", "Spans", "Range of their lengths, as in its code", enum=["paper", "released"]),
    "pair_weights": param("mean", "Weights of pairs", _PAIR_WEIGHTS, enum=["mean", "sum", "distance"]),
    "pairs": Param(**_TEXT, title="Pairs", description="Graded pairs, csv or jsonl; empty: the sample"),
    "treebank": Param(**_TEXT, title="Treebank", description="CoNLL-U; empty: the sample"),
    "limit": param(200, "Sentences", "Maximum from the treebank and for each test", minimum=1),
    "tool": tool_param("files", "simulated"),
}


@task
def check(params: Any = None) -> None:
    """Check the parameters before anything is computed."""
    from pipeline.tasks.ndd import compressions, distance

    compressions.check_params(params)
    distance.check_params(params)


@dag(**build("ndd", Tag.SCORE, __doc__, PARAMS))
def ndd() -> None:
    @task(**GPU, inlets=tables("comments articles"), outlets=MODELS)
    def count(day: str, ref: str | None, run_id: Any = None) -> list[str | None]:
        from pipeline.tasks.ndd import masked_lm

        return masked_lm.count_all(day, ref, run_id)

    @task(**GPU, outlets=MODELS)
    def model(day: str, params: Any = None) -> str | None:
        from pipeline.tasks.ndd import masked_lm

        return masked_lm.adapt(day, profile=params["adapt"]) if params["adapt"] else params["model"]

    @task(**GPU, inlets=tables("comments"), outlets=tables("scores runs"))
    def context_shift(day: str, ref: str | None, params: Any = None, run_id: Any = None) -> int:
        from pipeline.tasks.ndd import context_shift

        options = {"divergence": params["divergence"] or "hellinger", "weights": params["pair_weights"]}
        return context_shift.score_day(day, ref, run_id, **options)

    @task(**GPU, inlets=tables("comments scores"), outlets=tables("studies runs"))
    def relate(day: str, ref: str | None, run_id: Any = None) -> int:
        from pipeline.tasks.ndd import compressions, context_shift

        return compressions.replace_study("context_shift", context_shift.correlate_day(day, ref), day, run_id)

    @task(**GPU)
    def systems(ref: str | None, params: Any = None) -> list[str]:
        from pipeline.tasks.ndd import compressions

        return compressions.list_systems(params["systems"], ref)

    @task(**GPU, map_index_template="{{ system }}")
    def compress(system: str, day: str, ref: str | None, params: Any = None) -> dict[str, Any]:
        from pipeline.tasks.ndd import compressions

        return dict(compressions.stage(system, compressions.make_job(params, day, ref)))

    @task(outlets=tables("compressions studies dropped runs"))
    def publish(staged: Any, day: str, params: Any = None, run_id: Any = None) -> int:
        from pipeline.tasks.ndd import compressions, grades

        count = compressions.publish(list(staged), params["source"], day, run_id)
        grades.publish(params["source"], day, run_id)  # grades that people gave of what is still there
        return count

    @task(inlets=tables("compressions"), outlets=tables("studies runs"))
    def measure(day: str, params: Any = None, run_id: Any = None) -> int:
        from pipeline.tasks.ndd import compressions

        return compressions.publish_measures(params["source"], day, run_id)

    @task(**GPU, outlets=tables("studies runs"))
    def thresholds(day: str, ref: str | None, params: Any = None, run_id: Any = None) -> int:
        from pipeline.tasks.ndd import compressions

        job = compressions.make_job(params, day, ref)
        rows = compressions.try_thresholds(compressions.load_items(job.data, job.format, job.split), job)
        return compressions.publish_thresholds(rows, job.source, day, run_id)

    @task(**GPU, map_index_template="{{ study }}", outlets=tables("studies runs"))
    def test(study: str, day: str, ref: str | None, params: Any = None, run_id: Any = None) -> int:
        from pipeline.tasks.ndd import compressions, distance

        names = ("pairs", "treebank", "limit", "divergence", "pair_weights")
        rows = distance.run_study(study, day, ref, *(params[name] for name in names))
        return compressions.replace_study(study, rows, day, run_id)

    @task(**GPU, inlets=tables("compressions studies"), outlets=[PAGES["ndd"]], trigger_rule="none_failed")
    def page(day: str, ref: str | None) -> str:
        from pipeline.tasks.ndd import page

        return str(page.write(day, ref))

    day = resolve_day()
    check() >> day
    ref = model(day)
    word_counts, system_names = count(day, ref), systems(ref)
    shift_count, measure_count = relate(day, ref), measure(day)
    word_counts >> context_shift(day, ref) >> shift_count
    published = publish(compress.partial(day=day, ref=ref).expand(system=system_names), day)
    grade_counts = ask_people("grades", "ndd.grades", ["{{ params.source }}"], day, "ndd", "studies")
    published >> [measure_count, grade_counts]
    test_counts = test.partial(day=day, ref=ref).expand(study=["similarity", "pruning", "predicates"])
    threshold_count = thresholds(day, ref)
    word_counts >> check_due(day) >> [system_names, test_counts, threshold_count]
    [shift_count, measure_count, grade_counts, test_counts, threshold_count] >> page(day, ref)


ndd()
