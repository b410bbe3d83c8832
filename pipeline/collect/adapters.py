"""The five sites. An adapter is a module with `parse`, `next_url`, `ADAPTER` and `START`, all pure."""

from types import ModuleType

from pipeline.collect import bilibili, netease, tencent_news, weibo, zhihu
from pipeline.errors import BadInput

ADAPTERS: dict[str, ModuleType] = {
    "weibo": weibo,
    "netease": netease,
    "bilibili": bilibili,
    "zhihu": zhihu,
    "tencent_news": tencent_news,
}


def adapter(source: str) -> ModuleType:
    """The adapter of a site."""
    if source not in ADAPTERS:
        raise BadInput(f"no adapter for source {source!r}; there are {', '.join(ADAPTERS)}")
    return ADAPTERS[source]
