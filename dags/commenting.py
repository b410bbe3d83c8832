"""Build a corpus of articles and comments, train commenters, collect human grades, and evaluate metrics.

1. Tokenize the articles and assign them to splits with references (article commenting, section 3).
2. Train commenters on the GPU queue and generate comments on the test articles.
3. Collect human grades of the references and of the generated comments.
4. Score all comments with quality-weighted metrics and correlate the scores with the grades (section 5).

The DAG reads `articles`, `comments` and `tokens`. It writes `threads`, `reference_comments`, `models`, `evaluations`,
`generated_comments`, `label_tasks`, `labels`, `comment_grades`, `metric_scores`, `studies` and
`<home>/reports/commenting-<day>.html`.

By default (*People*: none) the DAG uses the existing grades; without grades, it computes only the plain metrics. With
`files` people's grades are read from `<home>/labelling/quality_references/labels/` and `…/quality_candidates/labels/`;
`label_studio` needs the connection `undertone_label_studio`.

**Triage.**

- *BadInput* in `check` names the commenter or the hyperparameter. Nothing was computed.
- *Missing* in `plan`: no article has comments. *Missing* in `corpus`: some days with comments have no tokens.
- No test article: by default, a test article needs 30 long comments and over 200 upvotes. You can lower both numbers in
  the form.
"""

from typing import Any

from airflow.sdk import Param, dag, task

from dag_assets import MODELS, PAGES, tables
from dag_defaults import DAY, GPU, Tag, ask_people, build, check_due, optional_param, param, resolve_day, tool_param

SYSTEMS = ["ir_t", "ir_tc", "seq2seq", "att", "att_tc"]
PRESETS = ["s/5", "(s-1)/4", "s/max"]
FIRST_DAY = "Articles whose earliest comment is of this UTC day or later; the paper: 2017-04-01"
LAST_DAY = "Articles whose earliest comment is of this UTC day or earlier; the paper: 2017-08-31"
ITEMS = {"type": "string", "enum": SYSTEMS}
PARAMS = {
    "day": DAY,
    "source": Param(None, type=["null", "string"], title="Source", description="Source of the articles; empty: all"),
    "least_words": param(30, "Minimum words", "Words of the body of an article", minimum=0),
    "least_comments": param(20, "Minimum comments", "Comments on an article", minimum=1),
    "test_comments": param(30, "Minimum test comments", "Long comments on a test article", minimum=1),
    "comment_words": param(6, "Long comment", "Minimum words of a long comment", minimum=1),
    "likes": param(201, "Minimum upvotes", "Upvotes of all comments on a test article", minimum=0),
    "references": param(27, "References", "Number drawn for each test article", minimum=1),
    "first_day": optional_param("string", "First day", FIRST_DAY, format="date"),
    "last_day": optional_param("string", "Last day", LAST_DAY, format="date"),
    "rows_per_shard": param(5000, "Articles per shard", "One task for each shard", minimum=1),
    "systems": param(SYSTEMS, "Commenters", "Commenters to train", items=ITEMS, uniqueItems=True),
    "numbers": param({}, "Hyperparameters", "Changes by commenter: {'att': {'epochs': 2}}"),
    "tool": tool_param("files", "label_studio", "simulated"),
    "preset": param("s/5", "Weights", "Formula from grades to weights; max: maximum of the article", enum=PRESETS),
    "train_quality": param(False, "Scorer", "At the end, train a scorer on the grades"),
}


@task(**GPU)  # the recipes are in modules that import torch
def check(params: Any = None) -> None:
    """Check the commenters and their hyperparameters before anything is computed."""
    from pipeline.tasks.commenting import commenters

    commenters.check_params(params)


@dag(**build("commenting", Tag.TRAIN, __doc__, PARAMS))
def commenting() -> None:
    @task
    def plan(day: str, params: Any = None) -> list[Any]:
        from pipeline.tasks.commenting import corpus

        return list(corpus.plan(params["rows_per_shard"], params["source"]))

    @task
    def cut(part: Any) -> dict[str, Any]:
        from pipeline.tasks.commenting import corpus

        return dict(corpus.stage_words(part))

    @task(inlets=tables("articles comments tokens"), outlets=tables("threads reference_comments dropped runs"))
    def corpus(staged: Any, day: str, params: Any = None, run_id: Any = None) -> dict[str, int]:
        from pipeline.tasks.commenting import corpus

        return corpus.publish(list(staged), day, corpus.parse_rules(params), run_id, params["source"])

    @task
    def systems(corpus_counts: Any, params: Any = None) -> list[str]:
        return list(params["systems"])

    @task(**GPU, map_index_template="{{ system }}", inlets=tables("threads"), outlets=MODELS)
    def train(system: str, day: str, params: Any = None, run_id: Any = None) -> dict[str, str]:
        from pipeline.tasks.commenting import commenters

        changes = params["numbers"].get(system, {})
        return {"system": system, "model_id": commenters.train(day, system, changes=changes, run_id=run_id)}

    @task(
        **GPU,
        map_index_template="{{ trained.system }}",
        inlets=tables("threads models"),
        outlets=tables("generated_comments runs"),
    )
    def generate(trained: Any, day: str, run_id: Any = None) -> int:
        from pipeline.tasks.commenting import generated

        return generated.generate(day, trained["system"], ref=trained["model_id"], run_id=run_id)

    @task(inlets=tables("reference_comments"), outlets=tables("generated_comments runs"))
    def real(corpus_counts: Any, day: str, run_id: Any = None) -> int:
        from pipeline.tasks.commenting import generated

        return generated.generate(day, generated.HUMAN, run_id=run_id)

    @task(**GPU, inlets=tables("comment_grades"), outlets=MODELS)
    def scorer(day: str, params: Any = None, run_id: Any = None) -> str | None:
        from pipeline.tasks.commenting import scorer

        return scorer.train_if_graded(day, run_id) if params["train_quality"] else None

    @task(
        inlets=tables("generated_comments reference_comments comment_grades"),
        outlets=tables("metric_scores dropped runs"),
        trigger_rule="none_failed",
    )
    def measure(day: str, params: Any = None, run_id: Any = None) -> dict[str, int]:
        from pipeline.tasks.commenting import overlap

        return overlap.measure(day, params["preset"], run_id=run_id)

    @task(inlets=tables("metric_scores comment_grades"), outlets=tables("studies runs"))
    def correlate(day: str, run_id: Any = None) -> int:
        from pipeline.tasks.commenting import correlations

        return correlations.write_correlations(day, run_id).height

    @task(inlets=tables("metric_scores studies evaluations"), outlets=[PAGES["commenting"]])
    def page(day: str) -> str:
        from pipeline.tasks.commenting import page

        return str(page.write(day))

    day = resolve_day()
    check() >> day
    parts = plan(day)
    check_due(day) >> parts
    corpus_counts = corpus(cut.expand(part=parts), day)
    trained = train.partial(day=day).expand(system=systems(corpus_counts))
    comment_counts = generate.partial(day=day).expand(trained=trained)
    kinds = ("references", "candidates")
    references, candidates = (
        ask_people(kind, "commenting.grades", [kind], day, "commenting", "comment_grades") for kind in kinds
    )
    corpus_counts >> references
    [comment_counts, real(corpus_counts, day)] >> candidates
    metric_counts = measure(day)
    [references, candidates] >> metric_counts >> correlate(day) >> scorer(day) >> page(day)


commenting()
