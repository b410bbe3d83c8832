"""HTML of comments to text, keeping what carries tone.

An image gives its alt text ([doge] marks sarcasm on Weibo), a line break a newline; a mention stays.
"""

import html
import re
from html.parser import HTMLParser

ROUNDS = 20  # of entities inside entities; pages that were escaped again and again have two or three
_LEADING_ZEROS = re.compile(r"&#0+(?=[0-9])")
_NO_CHARACTER = re.compile(r"&#[0-9]{8,}")  # Python refuses to read a number of more than 4,300 digits
_BREAKS = {"br", "p", "div", "li"}
_LABELS = {"查看图片", "网页链接", "查看动图", "评论配图"}  # link texts that the site adds, not the writer
# a tag that never ends, or a quotation mark that none closes, has the parser look to the text's end each time anew
_NO_TAG = re.compile(r"<(?![^<>\"']*(?:\"[^<>\"]*\"[^<>\"']*|'[^<>']*'[^<>\"']*)*>)")
_OWN_MARK = re.compile(r"<[A-Za-z][A-Za-z0-9]*>")  # <doge>: a word in brackets rather than a tag
_TAGS = (
    "a abbr article aside b big blockquote body br center cite code dd del details div dl dt em embed figcaption "
    "figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label li link main mark "
    "meta nav noscript ol option p picture pre q rp rt ruby s samp script section select small source span strike "
    "strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr tt u ul var video "
    "wbr"
)
_NAMES = frozenset(_TAGS.split())
_EXPORTED = re.compile(r"<(?:span|img|a|br|p)\b[^<>]*>")


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.parts.append(dict(attrs).get("alt") or "")
        elif tag not in _NAMES and _OWN_MARK.fullmatch(tag_text := self.get_starttag_text() or ""):
            self.parts.append(tag_text)
        elif tag in _BREAKS and self.parts and not self.parts[-1].endswith("\n"):
            self.parts.append("\n")

    def set_cdata_mode(self, elem: str, **_: object) -> None:
        """Read on: a <script> that nothing closes would swallow the rest of the text."""

    def unknown_decl(self, data: str) -> None:  # <![CDATA[text]]>
        self.parts.append(data.removeprefix("CDATA["))

    def handle_pi(self, data: str) -> None:
        self.parts.append(f"<?{data}>")

    def handle_decl(self, decl: str) -> None:
        self.parts.append("" if decl.lower().startswith("doctype") else f"<!{decl}>")

    def handle_data(self, data: str) -> None:
        if data.strip() not in _LABELS:
            self.parts.append(data)


def extract_text(markup: str) -> str:
    """The text of an HTML fragment: entities decoded, alt texts kept, other tags gone, blank ends stripped."""
    if "<" not in markup and "&" not in markup:
        return markup.strip()
    parser = _Text()
    parser.feed(shorten_numbers(_NO_TAG.sub("&lt;", markup)))
    parser.close()
    return "".join(parser.parts).strip()


def extract_exported(text: str) -> str:
    """The text of a field of an export: weibo-crawler leaves the HTML in."""
    return extract_text(text) if "<" in text and _EXPORTED.search(text) else text


def shorten_numbers(text: str) -> str:
    """Numeric entities of any length as ones that `html` reads; what is no character stays none."""
    return _NO_CHARACTER.sub("&#9999999", _LEADING_ZEROS.sub("&#", text)) if "&#" in text else text


def unescape(text: str) -> str:
    """The text with its entities decoded once."""
    return html.unescape(shorten_numbers(text))
