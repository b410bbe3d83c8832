"""Build cloze items on abstract words from articles with summaries, train readers, and test them on both subtasks.

1. Find the words that an item can leave out (imperceptibility and nonspecificity).
2. Readers that have not seen an item propose wrong options. The DAG keeps items with four wrong options.
3. If *People* is set, people rate the items. Items that they find faulty are left out of training and tests.
4. Train a reader on each subtask, and test it on both subtasks (ReCAM).

The DAG reads English `articles` that have a `summary`; import some with the DAG `collect`. It writes `cloze_targets`,
`cloze_items`, `label_tasks`, `labels`, `models`, `evaluations`, `dropped`, `runs` and
`<home>/reports/cloze-<day>.html`.

**Triage.**

- *BadInput* in `rules` names the parameter or the file. Nothing was computed.
- *Missing* in `plan`: no article has a summary.
- *Missing: WordNet* in `find`: run `make wordnet`, or install nltk's `wordnet` on every worker.
- The view `cloze_funnel` shows how many words each filter drops. Items with too few wrong options are in `dropped`.
"""

from typing import Any

from airflow.sdk import Param, dag, task

from dag_assets import MODELS, PAGES, tables
from dag_defaults import (
    DAY,
    GPU,
    Tag,
    ask_people,
    build,
    check_due,
    optional_param,
    param,
    resolve_day,
    skip_missing,
    tool_param,
)

RATINGS = "Rated words, such as MRC's, to train a scorer of abstractness; empty: the scorer in force"
SCORER = "Id of a scorer, or a file of ratings to use unchanged; empty: the scorer in force"
CHOOSING = "paper: the most frequent proposals; balanced: the options alone do not reveal the answer"
SENSES = "What chooses the sense of a word: signatures (shared words) or glosses (shared phrases)"
SMALL = "Use small readers, which a CPU can train, to propose wrong options"
NUMBERS = "Changes for the readers that propose options; also concrete_from and specific_from"
START = "Word vectors in GloVe's format, or the folder of an encoder; empty: the encoder in force"
PROFILES = ["gated", "attentive", "gloss", "official", "filled", "masked", "strong"]
PARAMS = {
    "day": DAY,
    "source": optional_param("string", "Source", "Source of the articles; empty: all"),
    "ratings": optional_param("string", "Ratings", RATINGS),
    "scorer": optional_param("string", "Scorer", SCORER),
    "vectors": optional_param("string", "Vectors", "GloVe-format file for filters and options; empty: the encoder"),
    "conllu": optional_param("string", "Treebank", "CoNLL-U file to train a tagger, without stanza"),
    "similar": param(0.85, "Similarity limit", "A word with a higher cosine is too similar", minimum=0, maximum=1),
    "in_context": param(True, "In context", "Also filter by the states of an encoder"),
    "senses": param("signatures", "Senses", SENSES, enum=["signatures", "glosses", "glosses_normalised"]),
    "rows_per_shard": param(500, "Articles per shard", "One task for each shard", minimum=1),
    "rule": Param("paper", enum=["paper", "balanced"], title="Wrong options", description=CHOOSING),
    "is_small": Param(False, type="boolean", title="Small", description=SMALL),
    "numbers": Param({}, type="object", title="Hyperparameters", description=NUMBERS),
    "profile": Param("gated", enum=PROFILES, title="Reader", description="Profile of the reader to train and test"),
    "start": optional_param("string", "Begin with", START),
    "epochs": optional_param("integer", "Epochs", "Empty: the number of the profile", minimum=1),
    "seed": optional_param("integer", "Seed", "Empty: the number of the profile"),
    "tool": tool_param("files", "label_studio", "simulated"),
}
SUBTASKS = ("imperceptibility", "nonspecificity")


@dag(**build("recam", Tag.TRAIN, __doc__, PARAMS))
def recam() -> None:
    @task
    def plan(day: str, params: Any = None) -> list[Any]:
        from pipeline.tasks.recam import targets

        return list(targets.plan(params["rows_per_shard"], params["source"]))

    @task(**GPU, outlets=MODELS)  # trains a scorer, if there are ratings
    def rules(day: str, params: Any = None, run_id: Any = None) -> dict[str, Any]:
        from pipeline.tasks.recam import options, targets

        options.check_params(params)
        return dict(targets.resolve_rules(day, params, params["ratings"], run_id))

    @task(**GPU)  # embeds words, to leave out what is too similar
    def find(part: Any, rule_values: Any) -> dict[str, Any]:
        from pipeline.tasks.recam import targets

        return dict(targets.stage_targets(part, targets.parse_rules(rule_values)))

    @task(inlets=tables("articles"), outlets=tables("cloze_targets dropped runs"))
    def targets(staged: Any, day: str, rule_values: Any, run_id: Any = None) -> dict[str, int]:
        from pipeline.tasks.recam import targets

        return targets.publish_targets(list(staged), day, targets.parse_rules(rule_values), run_id)

    @task
    def jobs(target_counts: Any) -> list[Any]:
        from pipeline.tasks.recam import options

        return list(options.list_jobs())

    @task(**GPU, map_index_template="{{ job.subtask }} {{ job.reader }} {{ job.fold }}")
    def propose(job: Any, params: Any = None) -> dict[str, Any]:
        from pipeline.tasks.recam import options, targets

        return dict(options.stage_proposals(job, targets.parse_rules(params)))

    @task(
        **GPU,  # embeds options as `find` does words
        map_index_template="{{ subtask }}",
        inlets=tables("cloze_targets"),
        outlets=tables("cloze_items evaluations dropped runs"),
    )
    def items(subtask: str, proposals: Any, day: str, rule_values: Any, run_id: Any = None) -> int:
        from pipeline.tasks.recam import options, targets

        return options.publish_items(subtask, list(proposals), day, targets.parse_rules(rule_values), run_id)

    @task
    def subtasks(item_counts: Any) -> list[str]:  # so that a run that is not due skips `train`
        return list(SUBTASKS)

    @task(
        **GPU,
        map_index_template="{{ subtask }}",
        inlets=tables("cloze_items"),
        outlets=MODELS,
        trigger_rule="none_failed",
    )
    def train(subtask: str, day: str, params: Any = None, run_id: Any = None) -> dict[str, str]:
        from pipeline.tasks.recam import readers, targets

        changes = {"epochs": params["epochs"], "seed": params["seed"]}
        options = {"profile": params["profile"], "changes": changes, "path": targets.parse_path(params["start"])}
        with skip_missing():  # few articles may give no items of a subtask
            model_id = readers.train(day, subtask, **options, run_id=run_id)
        return {"trained_on": subtask, "model_id": model_id}

    @task(
        **GPU,
        map_index_template="{{ trained.trained_on }} on {{ tested_on }}",
        inlets=tables("cloze_items models"),
        outlets=tables("evaluations runs"),
    )
    def test(trained: Any, tested_on: str, day: str, run_id: Any = None) -> int:
        from pipeline.tasks.recam import readers

        with skip_missing():
            return readers.evaluate_crossed(day, trained["trained_on"], tested_on, trained["model_id"], run_id)

    @task(inlets=tables("cloze_items evaluations"), outlets=[PAGES["cloze"]], trigger_rule="none_failed")
    def page(test_counts: Any, day: str) -> str:
        from pipeline.tasks.recam import page

        return str(page.write(day))

    day = resolve_day()
    parts, rule_values = plan(day), rules(day)
    check_due(day) >> parts >> rule_values
    staged = find.partial(rule_values=rule_values).expand(part=parts)
    proposals = propose.expand(job=jobs(targets(staged, day, rule_values)))
    item_counts = items.partial(proposals=proposals, day=day, rule_values=rule_values).expand(subtask=SUBTASKS)
    trained = train.partial(day=day).expand(subtask=subtasks(item_counts))
    item_counts >> ask_people("ratings", "recam.ratings", SUBTASKS, day, "cloze", "cloze_items") >> trained
    page(test.partial(day=day).expand(trained=trained, tested_on=SUBTASKS), day)


recam()
