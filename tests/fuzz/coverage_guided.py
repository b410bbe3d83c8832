"""Coverage-guided fuzzing of the parsers by atheris, where it is installed (`pip install atheris`).

    python tests/fuzz/coverage_guided.py TARGET [-max_total_time=60 …]

TARGET is one of `PARSERS`; what follows is libFuzzer's. It ends with the input that crashed, or with the number of
executions. Without atheris it says so and exits with 0.
"""

import sys
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

try:
    import atheris  # type: ignore[import-not-found]
except ImportError:
    print("atheris is not installed: pip install atheris; nothing was fuzzed")
    sys.exit(0)

with atheris.instrument_imports(include=["pipeline", "json", "html"]):
    from pipeline.collect.privacy import anonymise
    from pipeline.collect.sites.adapters import ADAPTERS, next_url, parse
    from pipeline.collect.sites.markup import text_of
    from pipeline.io.lines import parse_json
    from pipeline.io.spreadsheets import escape_formula, unescape_formula
    from pipeline.llm.questions import explicit, graded, problematic, recovery
    from pipeline.llm.service import replies

from pipeline.errors import UndertoneError  # noqa: E402

URLS = {
    "weibo": "https://m.weibo.cn/x?id=1", "netease": "https://music.163.com/api/v1/resource/comments/R_SO_4_1?limit=20",
    "bilibili": "https://api.bilibili.com/x?oid=1", "zhihu": "https://www.zhihu.com/api/v4/answers/1/comments",
    "tencent_news": "https://r.inews.qq.com/x?article_id=1",
}  # fmt: skip


def answers(text: str) -> None:
    """Answers of language models."""
    for name in ("explicit_zh", "dialogue_en"):
        explicit.parse(text, "- Are you coming? - I have work.", name)
    graded.parse(text, "en")
    problematic.parse(text)
    recovery.parse(text, "你可真准时")
    recovery.parse_choice(text, 4)


def replies(text: str) -> None:
    """What services answer."""
    replies.read_chat(text)
    replies.read_moderation(text)


def texts(text: str) -> None:
    """Markup, private particulars, cells."""
    text_of(text)
    found = anonymise.scrub(text)
    assert anonymise.scrub(found) == found
    assert unescape_formula(escape_formula(text)) == text


def pages(text: str) -> None:
    """A page, read as each site's."""
    try:
        body = parse_json(text)
    except ValueError:
        return
    for source in ADAPTERS if isinstance(body, dict) else ():
        try:
            redacted = anonymise.redact(body, source, b"key")
            parse(source, redacted, URLS[source], None)
            next_url(source, redacted, URLS[source])
        except UndertoneError:
            continue


PARSERS: dict[str, Callable[[str], None]] = {"answers": answers, "replies": replies, "texts": texts, "pages": pages}


def main() -> None:
    """Fuzz the target that is named first."""
    if len(sys.argv) < 2 or sys.argv[1] not in PARSERS:
        sys.exit(f"say which: {', '.join(PARSERS)}")
    one = PARSERS[sys.argv.pop(1)]

    def test(data: bytes) -> None:
        one(data.decode("utf-8", "replace"))

    atheris.Setup(sys.argv, test)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
