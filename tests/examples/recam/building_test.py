"""From articles with summaries to open cloze items."""

import re

import polars as pl
import pytest

from pipeline.examples.recam import building
from pipeline.text.tagging import Token

ARTICLES = pl.DataFrame(
    [
        ("news", "a", "They waited by the river.", "Hope grew by the river."),
        ("news", "b", "Nobody came to the old bridge.", "A town lost hope in spring."),
        ("news", "c", "The hope was gone.", "Hope was gone."),
    ],
    schema=["source", "thread_id", "text", "summary"],
    orient="row",
)
SCORES = {"hope": 0.1, "grew": 0.2, "lost": 0.3, "town": 0.8, "spring": 0.6, "river": 0.9}
RULES = {
    "imperceptibility": building.build_imperceptibility_rule(SCORES),
    "nonspecificity": building.build_imperceptibility_rule({"grew": 0.1, "hope": 0.9}),
}


def analyse(text: str) -> list[list[Token]]:
    return [[Token(m[0], m[0].lower(), "NOUN", m.start(), m.end()) for m in re.finditer(r"\w+", text)]]


@pytest.fixture
def tokens() -> pl.DataFrame:
    """Every token of the summaries, by both rules and the filter that looks into the passage."""
    frames = building.find_targets(ARTICLES, analyse, RULES, (building.flag_in_passage,))
    return pl.concat(frames).with_columns(source=pl.lit("news"))


def test_items_are_summaries_with_a_word_left_out(tokens: pl.DataFrame) -> None:
    """A target gives one item: the question without it, the word as it was written, and where it stood."""
    items = building.build_items(ARTICLES, tokens, "imperceptibility").sort("thread_id", "start")
    assert items.select("thread_id", "question", "answer", "start").rows() == [
        ("a", "@placeholder grew by the river.", "Hope", 0),
        ("a", "Hope @placeholder by the river.", "grew", 5),
        ("b", "A town @placeholder hope in spring.", "lost", 7),
        ("b", "A town lost @placeholder in spring.", "hope", 12),
    ]
    assert items.columns == list(building.OPEN)
    assert building.build_items(ARTICLES, tokens, "nonspecificity")["answer"].to_list() == ["grew"]


def test_an_id_says_where_the_word_stands(tokens: pl.DataFrame) -> None:
    """Each token has a row for each subtask, whatever the chunks; an item built again has its id."""
    items = building.build_items(ARTICLES, tokens, "imperceptibility")
    rebuilt = building.build_items(ARTICLES.reverse(), tokens.filter(thread_id="b").reverse(), "imperceptibility")
    assert rebuilt.equals(items.filter(thread_id="b"))
    other_items = building.build_items(ARTICLES, tokens, "nonspecificity")
    assert not set(other_items["item_id"]) & set(items["item_id"])
    assert items["item_id"].n_unique() == items.height
    count = sum(len(analyse(summary)[0]) for summary in ARTICLES["summary"])
    assert tokens.group_by("subtask").len().sort("subtask").rows() == [(name, count) for name in building.SUBTASKS]
    filters = (building.flag_in_passage,)
    alone = [next(building.find_targets(row, analyse, RULES, filters)) for row in ARTICLES.iter_slices(1)]
    order = ["subtask", "thread_id", "start"]
    assert pl.concat(alone).sort(order).equals(tokens.drop("source").sort(order))


def test_articles_without_targets_are_named(tokens: pl.DataFrame) -> None:
    """An article without questions is listed once; items of one article are on one side in both subtasks."""
    untargeted = building.list_untargeted(ARTICLES, tokens)
    assert set(untargeted["reason"]) == {"no_target"}
    assert untargeted["row_key"].to_list() == ["nonspecificity:b", "imperceptibility:c", "nonspecificity:c"]
    twice = ARTICLES.with_columns(text=pl.lit("One article. ").add(pl.lit("  TWICE")))
    twice = twice.with_columns(text=pl.when(thread_id="a").then(pl.lit("one article. twice")).otherwise("text"))
    splits = {building.build_items(twice, tokens, name)["split"].unique().item() for name in building.SUBTASKS}
    assert splits == {building.choose_split("one article. twice")}


def test_an_official_split_stays(tokens: pl.DataFrame) -> None:
    """Items have the split of their article (REC-03); an article that the file of splits lacks gets a drawn one."""
    official = dict(zip(ARTICLES["thread_id"], ("test", None, None), strict=True))
    items = building.build_items(ARTICLES.with_columns(split=pl.Series(official.values())), tokens, "imperceptibility")
    drawn_items = building.build_items(ARTICLES, tokens, "imperceptibility")
    for item, drawn_item in zip(items.to_dicts(), drawn_items.to_dicts(), strict=True):
        assert item["split"] == (official[item["thread_id"]] or drawn_item["split"])
    assert "test" in items["split"]


def test_the_split_has_the_shares_of_table_5() -> None:
    """Of 20,000 articles the parts hold what 3,227, 837 and 2,025 are of 6,089, within four standard errors."""
    counts = pl.Series([building.choose_split(f"article {i}") for i in range(20_000)]).value_counts()
    for name, count in counts.iter_rows():
        share = building.SHARES[name]
        assert abs(count / 20_000 - share) < 4 * (share * (1 - share) / 20_000) ** 0.5
