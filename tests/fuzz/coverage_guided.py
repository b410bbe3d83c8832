"""Coverage-guided fuzzing of the parsers by atheris, where it is installed (`pip install atheris`).

    python tests/fuzz/coverage_guided.py TARGET [-max_total_time=60 …]

TARGET is one of `PARSERS`; what follows is libFuzzer's. It ends with the input that crashed, or with the number of
executions. Without atheris it says so and exits with 0.
"""

import sys
from contextlib import suppress
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

try:
    import atheris  # type: ignore[import-not-found]
except ImportError:
    print("atheris is not installed: pip install atheris; nothing was fuzzed")
    sys.exit(0)

with atheris.instrument_imports(include=["pipeline", "json", "html"]):
    from pipeline.collect.privacy import anonymise
    from pipeline.collect.sites.adapters import ADAPTERS, find_next_url, parse
    from pipeline.collect.sites.markup import extract_text
    from pipeline.io.lines import parse_json
    from pipeline.io.spreadsheets import escape_formula, unescape_formula
    from pipeline.llm.questions import explicit, graded, judging, problematic, recovery
    from pipeline.llm.service.replies import read_chat, read_moderation

from pipeline.errors import UndertoneError  # noqa: E402

URLS = {
    "weibo": "https://m.weibo.cn/x?id=1", "netease": "https://music.163.com/api/v1/resource/comments/R_SO_4_1?limit=20",
    "bilibili": "https://api.bilibili.com/x?oid=1", "zhihu": "https://www.zhihu.com/api/v4/answers/1/comments",
    "tencent_news": "https://r.inews.qq.com/x?article_id=1",
}  # fmt: skip


def read_texts(text: str) -> None:
    """Markup, private particulars, cells."""
    extract_text(text)
    scrubbed = anonymise.scrub(text)
    assert anonymise.scrub(scrubbed) == scrubbed
    assert unescape_formula(escape_formula(text)) == text


def read_pages(text: str) -> None:
    """A page, read as each site's."""
    body = None
    with suppress(ValueError):
        body = parse_json(text)
    for source in ADAPTERS if isinstance(body, dict) else ():
        redacted = anonymise.redact(body, source, b"key")
        with suppress(UndertoneError):
            parse(source, redacted, URLS[source], None)
            find_next_url(source, redacted, URLS[source])


PARSERS = {
    "answers": [
        lambda text: explicit.parse(text, "- Are you coming? - I have work.", "explicit_zh"),
        lambda text: explicit.parse(text, "- Are you coming? - I have work.", "dialogue_en"),
        lambda text: graded.parse(text, "en"),
        problematic.parse,
        lambda text: recovery.parse(text, "你可真准时"),
        lambda text: recovery.parse_choice(text, 4),
        lambda text: judging.parse_labels(text, judging.PAIR),
    ],
    "replies": [read_chat, read_moderation],
    "texts": [read_texts],
    "pages": [read_pages],
}


def main() -> None:
    """Fuzz the target that is named first."""
    if len(sys.argv) < 2 or sys.argv[1] not in PARSERS:
        sys.exit(f"name one of {', '.join(PARSERS)}")
    parsers = PARSERS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, lambda data: [read(data.decode("utf-8", "replace")) for read in parsers])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
