"""The raters' guidelines as one HTML page that needs no network, in light and dark and for paper."""

from importlib.resources import files

from markdown_it import MarkdownIt

from pipeline.errors import BadInput
from pipeline.label import schema
from pipeline.report.sections import render_template

LANGS = {"zh": "zh-Hans", "en": "en"}
"""Languages there are guidelines in, with the tag that makes a browser choose fitting glyphs."""


def render(lang: str) -> str:
    """Render the guidelines in a language, with the version of the label schema at the foot; BadInput without any."""
    if lang not in LANGS:
        raise BadInput(f"lang should be one of {', '.join(LANGS)}, found {lang!r}")
    text = files("pipeline.label").joinpath("guidelines", f"{lang}.md").read_text(encoding="utf-8")
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    title = text.partition("\n")[0].removeprefix("# ")
    version = schema.hash_schema()
    return render_template("labelling/guidelines.html", lang=LANGS[lang], title=title, body=body, version=version)
