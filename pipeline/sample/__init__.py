"""The sample: a small corpus that the demo and the tests run on, written for Undertone by language models.

`pages/` holds raw pages in each site's JSON shape, `completions.jsonl` a cassette of (implicit, explicit) rewritings
under the model name `undertone-sample`, `devices.csv` what each comment was written to show,
`groups/` graded groups: one intent said in five ways, `obvious/` pairs that a person orders without thought,
`judgements.jsonl` a cassette of how implicit a language model that read them blind (`undertone-reader`) judged the
comments of `pages/` and the sentences of 150 held-out groups, `summaries.jsonl` articles with a summary,
`threads.jsonl` articles with comments, upvotes and grades from 1 to 5 by the writer, who posed as two raters,
`compressions.jsonl` sentences with the words that a shorter one keeps, `trees.conllu` trees of some of them,
`similar.jsonl` pairs with how similar they are, from 0 to 5.
"""

from pathlib import Path

from pipeline.errors import BadInput

FOLDER = Path(__file__).parent
COMPLETIONS = FOLDER / "completions.jsonl"
GROUPS = {lang: FOLDER / "groups" / f"{lang}.jsonl" for lang in ("en", "zh")}
JUDGEMENTS = FOLDER / "judgements.jsonl"
OBVIOUS = {lang: FOLDER / "obvious" / f"{lang}.jsonl" for lang in GROUPS}
SUMMARIES = FOLDER / "summaries.jsonl"
THREADS = FOLDER / "threads.jsonl"
COMPRESSIONS = FOLDER / "compressions.jsonl"
SIMILAR = FOLDER / "similar.jsonl"
TREES = FOLDER / "trees.conllu"
THREAD_COLUMNS = {
    "thread_id": "article_id", "article_title": "title", "article_text": "content", "category": "category",
    "comments": "comments", "comment_id": "comment_id", "text": "text", "like_count": "upvotes",
}  # fmt: skip
PAIRS = ("sample_en", "sample_zh")  # sources of the cassette
MODEL = "undertone-sample"  # what the cassette says its answers are from
DAY = "2026-11-19"  # the day the demo files the sample under


def list_pages(source: str) -> list[Path]:
    """The sample's raw pages of one site."""
    path = FOLDER / "pages" / f"{source}.jsonl"
    if not path.is_file():
        raise BadInput(f"the sample has no source {source!r}; there are {', '.join(list_sites())}")
    return [path]


def list_sites() -> list[str]:
    """The sites the sample covers."""
    return sorted(path.stem for path in (FOLDER / "pages").glob("*.jsonl"))
