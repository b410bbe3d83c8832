"""The raters' guidelines as one HTML page that needs no network, in light and dark and for paper."""

from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt

from pipeline.errors import BadInput
from pipeline.label import schema

LANGS = {"zh": "zh-Hans", "en": "en"}
"""Languages there are guidelines in, with the tag that makes a browser choose fitting glyphs."""

_TEMPLATE = Environment(autoescape=True, undefined=StrictUndefined).from_string("""\
<!doctype html>
<html lang="{{ tag }}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<title>Undertone — {{ title }}</title>
<style>
  :root { --ink: #1f2933; --soft: #616e7c; --line: #e4e7eb; --accent: #2a6f97; --paper: #fff; --tint: #f3f6f8; }
  @media screen and (prefers-color-scheme: dark) {
    :root { --ink: #e4e7eb; --soft: #9aa5b1; --line: #3e4c59; --accent: #7cb8d8; --paper: #1a2129; --tint: #27313b; }
  }
  body { font: 15px/1.6 system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif; color: var(--ink);
         max-width: 960px; margin: 2.5rem auto; padding: 0 1.2rem; background: var(--paper); }
  h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h1 + p, footer { color: var(--soft); margin-top: 0; }
  h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem; border-bottom: 2px solid var(--line); padding-bottom: .2rem; }
  h3 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
  ul, ol { padding-left: 1.3rem; } li { margin: .25rem 0; }
  .wide { overflow-x: auto; margin: .8rem 0; }
  table { border-collapse: collapse; width: 100%; font-size: .9rem; }
  th { text-align: left; color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line);
       padding: .3rem .6rem; white-space: nowrap; }
  td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; vertical-align: top; }
  tr:has(code) > th:nth-last-child(4) { width: 32%; } /* tables of examples: alike in all sections */
  tr:has(code) > th:nth-last-child(3):nth-child(2) { width: 34%; }
  tr:has(code) > th:nth-last-child(2):nth-child(3) { width: 12%; }
  code { font-size: .82rem; background: var(--tint); color: var(--accent); border-radius: 3px; padding: .05rem .3rem;
         white-space: nowrap; }
  blockquote { margin: .8rem 0; padding: .1rem .9rem; border-left: 4px solid var(--accent); background: var(--tint); }
  footer { margin-top: 2.6rem; font-size: .85rem; }
  @media print {
    body { margin: 0; max-width: none; font-size: 10.5pt; } .wide { overflow: visible; }
    tr, li, blockquote { break-inside: avoid; } h2, h3 { break-after: avoid; } code { background: none; }
  }
</style>
</head>
<body>
<main>
{{ body | safe }}</main>
<footer>undertone · schema <code>{{ version }}</code></footer>
</body>
</html>
""")


def page(lang: str) -> str:
    """The guidelines in Chinese or English (`lang` zh or en), with the version of the label schema at the foot.

    Raises:
        BadInput: there are none in this language.
    """
    if lang not in LANGS:
        raise BadInput(f"lang should be one of {', '.join(LANGS)}, found {lang!r}")
    text = files("pipeline.label").joinpath("guidelines", f"{lang}.md").read_text(encoding="utf-8")
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    title = text.partition("\n")[0].removeprefix("# ")
    return _TEMPLATE.render(tag=LANGS[lang], title=title, body=body, version=schema.version())
