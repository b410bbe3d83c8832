"""HTML of comments to text, keeping what carries tone.

Crawlers commonly strip tags with a regular expression and so delete [doge], the alt text of an emoji image that
marks sarcasm on Weibo. Here an image gives its alt text, a line break a newline, and a mention stays a mention.
"""

import re
from html.parser import HTMLParser

_BREAKS = {"br", "p", "div", "li"}
_LABELS = {"查看图片", "网页链接", "查看动图", "评论配图"}  # link texts that the site adds, not the writer
# a tag that never ends, or a quotation mark that none closes, has the parser look to the text's end each time anew
_NO_TAG = re.compile(r"<(?![^<>\"']*(?:\"[^<>\"]*\"[^<>\"']*|'[^<>']*'[^<>\"']*)*>)")


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.parts.append(dict(attrs).get("alt") or "")
        elif tag in _BREAKS and self.parts and not self.parts[-1].endswith("\n"):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if data.strip() not in _LABELS:
            self.parts.append(data)


def text_of(markup: str) -> str:
    """The text of an HTML fragment: entities decoded, alt texts kept, other tags gone, blank ends stripped."""
    if "<" not in markup and "&" not in markup:
        return markup.strip()
    parser = _Text()
    parser.feed(_NO_TAG.sub("&lt;", markup))
    parser.close()
    return "".join(parser.parts).strip()
