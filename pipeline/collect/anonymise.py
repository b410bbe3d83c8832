"""Anonymising on the way in (CSD-08): nothing that names a private person is ever written.

User ids become keyed HMACs, or are dropped where no key is set: an unkeyed hash of a numeric id is undone by trying
all ids. Nicknames, avatars and regions are cut out of raw pages before they are stored. Phones, identity cards, mails,
messenger handles, addresses and @mentions inside texts become typed tokens. Names of public persons stay: the papers
need them. There is no name recogniser: a private name written as plain text survives, and the data card must say so.
"""

import hashlib
import hmac
import re
from collections import Counter
from typing import Any

import polars as pl

# ASCII look-arounds throughout: \b and \w match Chinese letters and would swallow what stands beside a number.
_REPLY_PREFIX = re.compile(r"^回复\s?@[^:：\s]{1,40}\s?[:：]\s?")
_URL = re.compile(
    r"""(?:https?://|(?<![A-Za-z0-9.])www\.)[^\s<>"'\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]+"""
    r"|(?<![A-Za-z0-9./])(?:t\.cn|b23\.tv|dwz\.cn|url\.cn|bit\.ly)/[A-Za-z0-9]+"
)
_EMAIL = re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+[@＠](?:[A-Za-z0-9-]+[.．])+[A-Za-z]{2,}")
_CARD = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{16}[0-9Xx](?![0-9A-Za-z])")
_PHONE = re.compile(
    r"(?<![0-9])(?:(?:\+|00)86[- ]?)?1[3-9][0-9](?:[-. ]?[0-9]{4}){2}(?![0-9])"  # mobile in China
    r"|(?<![0-9A-Za-z])0[1-9][0-9]{1,2}[- ][0-9]{7,8}(?![0-9])"  # landline in China
    r"|(?<![0-9A-Za-z])\+(?=(?:[- .()]{0,2}[0-9]){8})"  # international, not the "+10086" of applause
    r"[1-9][0-9]{0,2}(?:[- .]?\(?[0-9]{2,4}\)?){2,4}(?![0-9])"
    r"|(?<![0-9A-Za-z])(?:\([0-9]{3}\) ?|[0-9]{3}[-. ])[0-9]{3}[-. ][0-9]{4}(?![0-9])"  # North America
)
_HANDLE = re.compile(
    r"((?:QQ|微信|薇信|威信|扣扣|V信|vx|wx|wechat|telegram|加\s?[vVqQ])"
    r"(?:\s?(?:号|群|id)?\s*[:：是]\s*|\s?(?:号|群|id)\s*|\s*(?=[A-Za-z_-]{0,19}[0-9])))"  # no handle: "wechat always"
    r"[A-Za-z0-9_-]{5,20}(?![A-Za-z0-9])",
    re.IGNORECASE,
)
# any script and emoji; "3@5" is a price, "@ noon" no name
_MENTION = re.compile(r"(?:(?<![0-9])[@＠]|[@＠](?=[^\W0-9]))[\w\-·\U0001F000-\U0001FAFF\u2600-\u27BF]{1,30}")
_MAY_HOLD = r"(?i)[@＠]|\+[1-9]|[0-9]{7}|[0-9][-. )][ ]?[0-9]{3}|://|www\.|\.(cn|tv|ly)/|qq|微信|薇信|威信|扣扣|V信|vx|wx|wechat|telegram|加"

_ROUNDS = 20  # no comment takes more than a few; "qq1qq1qq1…" takes as many as it has letters, and then loses them
_ANY_HANDLE = re.compile(r"\[(?:URL|EMAIL|ID|PHONE|HANDLE|MENTION)\]|[A-Za-z0-9_.@＠+-]+")

HALF = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
FULL = "".join(chr(ord(letter) + 0xFEE0) for letter in HALF)  # their full-width twins
PLAIN = str.maketrans(FULL, HALF, "\u200b\u200c\u2060\ufeff")  # what would hide a number from the patterns above

_CARD_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def surrogate(source: str, user: str | None, key: bytes | None) -> str | None:
    """HMAC-SHA256 of a user id under the installation's key, cut to 128 bits; None without id or key."""
    if not user or not key:
        return None
    return hmac.new(key, f"undertone:v1:{source}:{user}".encode(), hashlib.sha256).hexdigest()[:32]


def surrogates(users: pl.Series, source: str, key: bytes | None) -> pl.Series:
    """`surrogate` for a column."""
    if not key:
        return pl.Series(users.name, [None] * len(users), dtype=pl.String)
    hashed = {user: surrogate(source, user, key) for user in users.drop_nulls().unique()}
    return users.replace_strict(hashed, default=None, return_dtype=pl.String)


def _is_card(match: re.Match[str]) -> bool:
    """Whether 18 characters are a Chinese identity number: a date at 7 to 14 and the check digit of GB 11643."""
    text = match[0].upper()
    month, day = int(text[10:12]), int(text[12:14])
    total = sum(int(digit) * weight for digit, weight in zip(text, _CARD_WEIGHTS, strict=False))
    return 1 <= month <= 12 and 1 <= day <= 31 and "10X98765432"[total % 11] == text[17]


def scrub(text: str, counts: Counter[str] | None = None) -> str:
    """The text with private particulars replaced by [URL], [EMAIL], [ID], [PHONE], [HANDLE], [MENTION]."""
    found = counts if counts is not None else Counter()

    def put(token: str, kept: str = "") -> str:
        found[token] += 1
        return f"{kept}[{token}]"

    for _ in range(_ROUNDS):  # "@one@two": the second shows once the first is gone
        before = text
        text = _REPLY_PREFIX.sub("", text)
        text = _URL.sub(lambda _: put("URL"), text)
        text = _EMAIL.sub(lambda _: put("EMAIL"), text)
        text = _CARD.sub(lambda m: put("ID") if _is_card(m) else m[0], text)
        text = _PHONE.sub(lambda _: put("PHONE"), text)
        text = _HANDLE.sub(lambda m: put("HANDLE", m[1]), text)
        text = _MENTION.sub(lambda _: put("MENTION"), text)
        if text == before:
            return text
    return _ANY_HANDLE.sub(lambda _: put("HANDLE"), text)


def scrub_column(texts: pl.Series, counts: Counter[str] | None = None) -> pl.Series:
    """`scrub` for a column; only rows that may hold something are looked at one by one."""
    rows = texts.str.contains(_MAY_HOLD).fill_null(value=False).arg_true()
    if not len(rows):
        return texts
    scrubbed = [scrub(text, counts) for text in texts.gather(rows)]
    return texts.clone().scatter(rows, scrubbed)  # a clone: scatter writes in place


class _Rule:
    """Which keys of a site's JSON hold persons (reduced to their hashed id), user ids, and what is cut out.

    Every other text but ids and addresses is scrubbed, whatever its key: sites add fields without telling.
    """

    def __init__(self, *, persons: str = "", ids: str = "", cut: str = "") -> None:
        self.persons, self.ids, self.cut = frozenset(persons.split()), frozenset(ids.split()), frozenset(cut.split())


_EVERYWHERE = "nickname nick uname screen_name user_name avatar head face signature sign gender sex birthday"
_RULES = {
    "weibo": _Rule(
        persons="user",
        cut=f"{_EVERYWHERE} source region_name user_avatar_url",
    ),
    "netease": _Rule(persons="user", cut=f"{_EVERYWHERE} ipLocation userId avatarUrl timeStr"),
    "bilibili": _Rule(
        persons="member owner", ids="mid",
        cut=f"{_EVERYWHERE} reply_control at_name_to_mid at_name_to_mid_str members mid_str",
    ),
    "zhihu": _Rule(
        persons="author member reply_to_author",
        cut=f"{_EVERYWHERE} comment_tag author_tag url_token address_text headline",
    ),
    "tencent_news": _Rule(ids="userid", cut=f"{_EVERYWHERE} userList region "
        "area province_city char_name head_url mb_nick_name mb_head_url uin coral_uid"),
}  # fmt: skip
_PERSON_IDS = ("id", "userId", "mid")
_ADDRESS = re.compile(r"(?i)id$|id_?str$|url|uri|^(?:next|previous|last|first|cursor|next_offset|scheme|created_at)$")
_ANCHOR = re.compile(r"<a\b[^>]*>")


def redact(body: Any, source: str, key: bytes | None) -> Any:
    """A raw page without personal fields: what may be stored, and what adapters read."""
    return _redact(body, _RULES[source], source, key)


def _redact(node: Any, rule: _Rule, source: str, key: bytes | None) -> Any:
    if isinstance(node, list):
        return [_redact(item, rule, source, key) for item in node]
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for name, value in node.items():
        if name in rule.cut:
            continue
        if name in rule.persons and isinstance(value, dict):
            out[name] = _person(value, source, key)
        elif name in rule.ids:
            out[name] = surrogate(source, str(value), key) if value else None
        elif isinstance(value, str):
            out[name] = value if _ADDRESS.search(name) else scrub(_ANCHOR.sub("<a>", value).translate(PLAIN))
        else:
            out[name] = _redact(value, rule, source, key)
    return out


def _person(value: dict[str, Any], source: str, key: bytes | None) -> dict[str, Any]:
    inner = value.get("member") if isinstance(value.get("member"), dict) else value
    for name in _PERSON_IDS:
        if inner and inner.get(name):
            return {name: surrogate(source, str(inner[name]), key)}
    return {}
