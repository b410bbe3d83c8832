"""Train the implicitness score (ImpScore): build pairs, and train a model on pairs and graded groups.

The DAG reads the rows of the tables and, if you name a folder, published data sets. If you name a language model, it
requests the missing explicit sentences from this model (connection `undertone_llm`, or UNDERTONE_LLM_URL and
UNDERTONE_LLM_KEY). It writes `sentences`, `completions`, `pairs`, `models` and `evaluations`.

Each answer is paid for once, even if a task is killed. The same pairs and hyperparameters give the same model id. The
DAG `score` uses the newest model that was promoted for the scored day or an earlier day. Until such a model exists, it
uses the model that ships with Undertone. A model that is worse than the one in force, or than a surface baseline, is
not promoted; the log of `train` has the comparison.

**Triage.**

- `evaluations` has the accuracies of the model, and the accuracies of length, punctuation, words and source alone.
- *Retry* in `answers`: some requests failed temporarily. A retry sends only those.
- *Refused*: check the key or the account.
- *BadInput* on the encoder: its files are not the pinned ones.
"""

from typing import Any

from airflow.sdk import TriggerRule, dag, task

from dag_assets import MODELS, tables
from dag_defaults import DAY, GPU, Tag, build, check_due, optional_param, param, resolve_day, service

DATA = "Folder with one folder for each data set, such as latent_hatred/; empty: the rows of the table"
CASSETTE = "A .jsonl cassette to add first, or `sample` for the shipped one; empty: the rows of the table"
PROMPTS = "Folder with the wording for each source, such as toxigen.md; empty: the shipped prompts"
PROFILES = "undertone also learns from graded groups; paper and official have their own hyperparameters"
PARAMS = {
    "day": DAY,
    "data": optional_param("string", "Data sets", DATA),
    "cassette": optional_param("string", "Completions", CASSETTE),
    "model": optional_param("string", "Language model", "Model for the requests; empty: no request is sent"),
    "mode": param("live", "Mode", "cache-only: use only answers that are paid for", enum=["live", "cache-only"]),
    "prompts": optional_param("string", "Prompts", PROMPTS),
    "max_cost": optional_param("number", "Cost limit", "Requests stop at this cost in USD; empty: no limit", minimum=0),
    "limit": optional_param("integer", "Sentences", "Maximum number of requests for each source", minimum=1),
    "profile": param("undertone", "Profile", PROFILES, enum=["undertone", "paper", "official"]),
    "epochs": optional_param("integer", "Epochs", "Empty: the number of the profile", minimum=1),
    "seed": optional_param("integer", "Seed", "Empty: 42, as in the released code"),
    "promote": param(False, "Promote", "Score days with it, even if it learned only from the pairs of the sample"),
}


@dag(**build("impscore", Tag.TRAIN, __doc__, PARAMS))
def impscore() -> None:
    @task
    def data_sets(params: Any = None) -> list[list[str]]:
        from pipeline.tasks.impscore import pairs

        pairs.check_files(params["cassette"], params["prompts"])
        return [list(item) for item in pairs.find_data_sets(params["data"]).items()] if params["data"] else []

    @task(outlets=tables("sentences runs"))
    def sentences(data_set: Any, day: str, run_id: Any = None) -> int:
        from pipeline.tasks.impscore import pairs

        return pairs.import_sentences(*data_set, day, run_id)

    @task(trigger_rule=TriggerRule.NONE_FAILED)
    def questions(sentence_counts: Any, params: Any = None, run_id: Any = None) -> list[str]:
        from pipeline.tasks import asking
        from pipeline.tasks.impscore import pairs

        if params["cassette"]:
            pairs.replay_cassette(params["cassette"], run_id)
        return asking.list_sources((), params["prompts"]) if params["model"] else []

    @task(map_index_template="{{ source }}", inlets=tables("sentences"), outlets=tables("completions runs"))
    def answers(source: str, day: str, params: Any = None, run_id: Any = None) -> dict[str, Any]:
        from pipeline.tasks import asking

        endpoint = asking.find_endpoint(*service("undertone_llm"))
        values = {name: params[name] for name in ("mode", "max_cost", "prompts")}
        options = asking.Options(params["model"], endpoint=endpoint, run_id=run_id, **values)
        return asking.ask(source, options, params["limit"], day)

    @task(trigger_rule=TriggerRule.NONE_FAILED)
    def sources(answer_counts: Any) -> list[str]:
        from pipeline.tasks.impscore import pairs

        return pairs.list_sources()

    @task(
        map_index_template="{{ source }}", inlets=tables("sentences completions"), outlets=tables("pairs dropped runs")
    )
    def pairs(source: str, day: str, params: Any = None, run_id: Any = None) -> int:
        from pipeline.tasks.impscore import pairs, train

        return pairs.build(source, day, train.choose_split(params["profile"]), params["seed"], run_id)

    # skipped where there is nothing to build pairs of
    @task(**GPU, inlets=tables("pairs"), outlets=MODELS)
    def train(pair_counts: Any, day: str, params: Any = None, run_id: Any = None) -> str:
        from pipeline.tasks.impscore import train

        changes = {"epochs": params["epochs"], "seed": params["seed"]}
        options = {"profile": params["profile"], "changes": changes, "promote": params["promote"]}
        return train.train(day, **options, run_id=run_id)

    day = resolve_day()
    folders = data_sets()
    check_due(day) >> folders
    sentence_counts = sentences.partial(day=day).expand(data_set=folders)
    answer_counts = answers.partial(day=day).expand(source=questions(sentence_counts))
    train(pairs.partial(day=day).expand(source=sources(answer_counts)), day)


impscore()
