"""Sphinx's configuration of the site: `make docs` builds it from README and the pages of this folder.

README, CONTRIBUTING, SECURITY and CHANGELOG are pages of the site as they stand, with their links rewritten. The pages
of docs/reference/ are generated from the code by generate.py and are not in git.
"""

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from sphinx.search import languages
from sphinx.search.en import SearchEnglish

sys.path.insert(0, str(Path(__file__).parent))
import generate

ROOT = Path(__file__).parents[1]

project = "Undertone"
html_title = "Undertone"
html_theme = "furo"
html_theme_options = {"source_edit_link": "", "top_of_page_buttons": []}
html_static_path = ["pictures"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
highlight_language = "text"
smartquotes = False
extensions = ["myst_parser"]
myst_heading_anchors = 4
exclude_patterns = ["requirements.txt"]
suppress_warnings = ["myst.header"]  # a page of the root may begin below its title
html_search_language = "zh"

ROOT_PAGES = {
    "index": "README.md",
    "zh": "README.zh.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
    "changelog": "CHANGELOG.md",
}
LINKS = {  # in README and pages -> in the site, from the folder of the page
    **{name: f"{page}.md" for page, name in ROOT_PAGES.items()},
    "examples": "library.md#examples",
    "sql/tables": "reference/tables.md",
    **{f"sql/{name}": f"reference/tables.md#{name}" for name in ("views", "checks")},
}


class EnglishAndChineseSearch(SearchEnglish):
    """English words by their stems, and Chinese by each two neighbouring characters.

    Sphinx's own Chinese search cuts pages by jieba but not what a reader types, so most Chinese queries find nothing.
    """

    lang = "zh"
    js_splitter_code = r"""
var splitQuery = (query) => (query.match(/\p{Script=Han}+|[\p{Letter}\p{Number}_]+/gu) || []).flatMap((word) =>
  /\p{Script=Han}/u.test(word) && word.length > 2
    ? Array.from(word.slice(1), (character, index) => word[index] + character)
    : [word]);
"""

    def split(self, text: str) -> list[str]:
        """Split a text into English words, Chinese characters and pairs of neighbouring ones."""
        words = []
        for chinese, word in re.findall(r"([\u3400-\u9fff]+)|([^\W\u3400-\u9fff]+)", text):
            words += [word] if word else [*chinese, *map("".join, pairwise(chinese))]
        return words


languages["zh"] = EnglishAndChineseSearch


def read_source(_: Any, page: str, content: list[str]) -> None:
    """Take the text of a page of the root, and point links at pages of the site."""
    if page in ROOT_PAGES:
        content[0] = (ROOT / ROOT_PAGES[page]).read_text(encoding="utf-8") + content[0]
    up = "../" * page.count("/")

    def rewrite(link: re.Match[str]) -> str:
        path, anchor = link[1].removeprefix("../" * (page.count("/") + 1)), link[2] or ""
        return f"]({up}{LINKS[path]}{anchor})" if path in LINKS else f"]({link[1].removeprefix('docs/')}{anchor})"

    content[0] = re.sub(r"\]\((?!https?:)([^)#\s]+)(#[^)]*)?\)", rewrite, content[0])


def setup(app: Any) -> None:
    """Generate the reference, and read pages through `read_source`."""
    generate.write_pages(ROOT, Path(__file__).parent / "reference")
    app.connect("source-read", read_source)
