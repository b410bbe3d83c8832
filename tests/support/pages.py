"""Pages and figures as readers and browsers see them, and what holds of every one."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl

HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>',
    "</td></table><iframe src='https://evil.example/'></iframe>", "{{ 7 * 7 }}{% raw %}",
    "--><style>@import url(https://evil.example/a.css)</style>", "</textarea>&lt;b&gt;",
]  # fmt: skip
CHROMIUM = Path("/usr/bin/chromium")  # for tests that see a page as its readers do
_DRAWN = {"g", "use", "path", "defs"}  # letters of a figure, one more for each that is new


class Page(HTMLParser):
    """What a browser would see: elements, their attributes, and text outside style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    @property
    def markup(self) -> list[str]:
        """Elements in order, but for the letters of figures."""
        return [tag for tag, _ in self.elements if tag not in _DRAWN]


def texts(html: str) -> str:
    """What a reader sees, in one line."""
    return " ".join(" ".join(Page(html).texts).split())


def tables(html: str) -> dict[str, list[list[str]]]:
    """The rows of each table by the title of its part, cells as text in one line."""
    rows = {}
    for part in html.split("<h2 ")[1:]:
        title = texts(part[part.index(">") + 1 : part.index("</h2>")])
        rows[title] = [
            [" ".join(cell.split()) for cell in re.findall(r"<td[^>]*>(.*?)</td>", line, re.DOTALL)]
            for line in re.findall(r"<tr>(.*?)</tr>", part, re.DOTALL)[1:]
        ]
    return rows


def loads(html: str) -> list[str]:
    """Every address that the page would fetch or follow, but places within itself."""
    named = {"src", "href", "xlink:href", "action", "data", "poster", "srcset", "formaction", "background"}
    addresses = [value or "" for _, attrs in Page(html).elements for name, value in attrs.items() if name in named]
    addresses += re.findall(r"url\(([^)]*)\)", html) + re.findall(r"@import\s*[^;]*", html)
    return [address for address in addresses if not address.strip("'\" ").startswith("#")]


def check_offline(html: str) -> None:
    """Nothing on the page is loaded from anywhere, there is no script, and a policy forbids both."""
    page = Page(html)
    assert loads(html) == []
    assert page.tags.isdisjoint({"script", "link", "iframe", "object", "embed", "img", "image", "form", "base"})
    policy = [attrs["content"] for _, attrs in page.elements if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def check_sections(html: str, titles: list[str], figures: int) -> None:
    """The page needs no network; each part has a heading and a link; figures have a name and a description."""
    check_offline(html)
    page = Page(html)
    assert list(tables(html)) == titles
    headings = [attrs["id"] for tag, attrs in page.elements if tag == "h2"]
    assert headings == [f"part-{number}" for number in range(1, len(titles) + 1)]
    assert [attrs["href"] for tag, attrs in page.elements if tag == "a"] == [f"#{name}" for name in headings]
    says = {attrs.get("id") for tag, attrs in page.elements if tag == "p" and attrs.get("class") == "says"}
    drawn = [attrs for _, attrs in page.elements if attrs.get("class") == "figure"]
    assert (len(drawn), html.count("<svg")) == (figures, figures)
    assert all(figure["role"] == "img" and figure["aria-label"] for figure in drawn)
    assert {figure["aria-describedby"] for figure in drawn} <= says
    assert all(part.startswith("<thead>") for part in re.findall(r"<table [^>]*>\s*(<\w+>)", html))  # print repeats it


def check_names(html: str, plain: str, times: int, names: list[str] = HOSTILE) -> None:
    """Hostile names stand on the page as text, so many times at least; they add no element and no handler."""
    page = Page(html)
    assert page.tags <= Page(plain).tags
    assert page.tags.isdisjoint({"script", "img", "iframe", "textarea"})
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert [name for name in names if page.texts.count(name) < times] == []


def words(svg: str) -> list[str]:
    """The texts of a figure, which its glyphs are drawn from: matplotlib notes each in a comment, lines apart."""
    return [re.sub(r"\s+", " ", text).strip() for text in re.findall("<!--(.*?)-->", svg, re.DOTALL)]


def said(svg: str) -> str:
    """What a figure says, in one line."""
    return " ".join(words(svg))


def elements(svg: str) -> set[str]:
    """The elements of a figure, which is one."""
    root = ET.fromstring(svg)  # noqa: S314 - our own
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return {element.tag.rpartition("}")[2] for element in root.iter()}


def check_print(svg: str) -> None:
    """A figure is one element without pictures, no text is smaller than 8 points, and it fits a page."""
    assert "image" not in elements(svg)
    sizes = [100 * float(scale) for scale in re.findall(r"scale\(([\d.]+) -", svg)]  # glyphs are of a font of 100
    assert min(sizes) >= 8 - 1e-6
    assert float(re.findall(r'width="([\d.]+)pt"', svg)[0]) <= 7.2 * 72 + 0.1


def check_rows(draw: Callable[[pl.DataFrame], str], rows: pl.DataFrame, keep: tuple[str, ...] = ()) -> None:
    """Names add no element. Texts of the columns of `keep` are no names."""
    names = [name for name in rows.columns if rows.schema[name] == pl.String and name not in keep]
    hostile = rows.head(1).with_columns(pl.lit(HOSTILE[i % 3]).alias(name) for i, name in enumerate(names))
    plain = rows.head(1).with_columns(pl.lit("a").alias(name) for name in names)
    assert elements(draw(hostile)) == elements(draw(plain))
