"""Anonymising on the way in (CSD-08): nothing that names a private person is ever written.

Names of public persons stay. There is no name recogniser: a private name in plain text survives.
"""

import hashlib
import hmac
import re
from functools import lru_cache
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

import polars as pl

from pipeline.collect.privacy.particulars import find_particulars, scrub


def hash_user(source: str, user: str | None, key: bytes | None) -> str | None:
    """HMAC-SHA256 of a user id under the installation's key, cut to 128 bits; None without id or key."""
    return hash_users(pl.Series([user], dtype=pl.String), source, key).item()  # type: ignore[no-any-return]


def hash_users(users: pl.Series, source: str, key: bytes | None) -> pl.Series:
    """Hash a column of user ids, as `hash_user` does."""
    if not key:
        return pl.Series(users.name, [None] * len(users), dtype=pl.String)
    start, hashes = hmac.new(key, f"undertone:v1:{source}:".encode(), "sha256"), dict[str | None, str]()
    for user in filter(None, users.unique().to_list()):
        state = start.copy()  # to key one for each user takes twice as long
        state.update(user.encode())
        hashes[user] = state.hexdigest()[:32]
    return pl.Series(users.name, [*map(hashes.get, users.to_list())], dtype=pl.String)


_IN_IDS = {"EMAIL", "ID", "PHONE", "CARD", "IBAN", "IP", "MENTION"}  # an address is no person's, and `qq_12` a source's
_SURROGATE = re.compile(r"anon-[0-9a-f]{32}")
_PLAIN_ID = re.compile(r"[0-9A-Za-z_]{1,10}|[0-9]+")
_PERSONAL_DIGITS = re.compile(r"1[3-9][0-9]{9}|[1-9][0-9]{16}[0-9Xx]")
# what an id must have to be looked at: a sign of a mail, handle or address, or the digits of a number
_PERSONAL_ID = r"[@＠%]|[:.].*[:.].*[:.]|(?:[0-9][^0-9]{0,3}){7}|[^\x00-\x7f]"
_ROW_KEY = r"^(.*\.(?:csv|tsv|txt|jsonl|ndjson|json|parquet|xlsx|db|sqlite|sqlite3))-[0-9]{1,8}$"


def scrub_id(value: str, source: str, key: bytes | None) -> str:
    """The id; a surrogate where it is or holds a mail, @handle, telephone, card, account number or IP address.

    The surrogate is the same wherever the id stands, so that answers still meet what they answer. Ids of the sites we
    have adapters for are long numbers of which some look like telephones: an id of digits alone is theirs, and stays.
    In another source, one that is a mobile number or an identity card is replaced.
    """
    if _SURROGATE.fullmatch(value):
        return value
    if _PLAIN_ID.fullmatch(value):
        is_personal = source not in _RULES and _PERSONAL_DIGITS.fullmatch(value) and bool(find_particulars(value))
    else:
        is_personal = any(_IN_IDS & _find_tokens(text) for text in {value, unquote(value)})
    return f"anon-{_digest(source, value, key)}" if is_personal else value


def _find_tokens(value: str) -> set[str]:
    parts = re.split(r"[/?&=#;]+", value) if "://" in value else [value]
    return {token for part in parts for _, _, token in find_particulars(part)}


@lru_cache(maxsize=1 << 16)
def _digest(source: str, value: str, key: bytes | None) -> str:
    """HMAC-SHA256 under the key; without one scrypt: a millisecond each, which makes trying all slow."""
    text = f"undertone:v1:id:{source}:{value}".encode("utf-8", "surrogatepass")
    if key:
        return hmac.digest(key, text, "sha256").hex()[:32]
    return hashlib.scrypt(text, salt=b"undertone:v1:id", n=512, r=8, p=1, dklen=16).hex()


def scrub_ids(ids: pl.Series, source: str, key: bytes | None) -> pl.Series:
    """`scrub_id` for a column; in keys of rows without an id, `a.csv-1000000`, it looks at the file alone."""
    rows = ids.str.contains(_PERSONAL_ID).fill_null(value=False).arg_true()
    if not len(rows):
        return ids
    files = ids.gather(rows).str.extract(_ROW_KEY, 1)
    plain = [file for file in files.unique().drop_nulls() if scrub_id(file, source, key) == file]
    rows = rows.filter(~files.is_in(plain).fill_null(value=False))
    return ids.clone().scatter(rows, [scrub_id(value, source, key) for value in ids.gather(rows)])


def scrub_file_name(name: str, key: bytes | None) -> str:
    """The name of a file or folder; a surrogate with its ending where the name holds something private."""
    path = PurePath(name)
    is_personal = any(token in _IN_IDS | {"HANDLE"} for _, _, token in find_particulars(path.stem))
    return f"anon-{_digest('file', name, key)}{path.suffix}" if is_personal else name


def scrub_address(url: str, source: str, key: bytes | None) -> str:
    """An address of a page, its parts scrubbed as ids: numbers stay, which say what the page is."""
    return re.sub(r"[^/?&=#;]+", lambda part: scrub_id(part[0], source, key), url)


_TENCENT = "userList region area province_city char_name"
_EVERYWHERE = (
    "nickname nick uname screen_name user_name avatar head face signature sign gender sex birthday phone phone_number "
    "mobile tel email mail qq wechat weixin real_name realname id_card ip ip_address ip_location ip_label location"
)
# by site, the keys of its JSON that hold persons (reduced to their hashed id), user ids, and what is cut out
_RULES = {
    site: (frozenset(persons.split()), frozenset(ids.split()), frozenset(f"{_EVERYWHERE} {cut}".split()))
    for site, persons, ids, cut in (
        ("weibo", "user", "", "source region_name user_avatar_url"),
        ("netease", "user", "", "ipLocation userId avatarUrl timeStr"),
        ("bilibili", "member owner", "mid", "reply_control at_name_to_mid at_name_to_mid_str members mid_str"),
        ("zhihu", "author member reply_to_author", "", "comment_tag author_tag url_token address_text headline"),
        ("tencent_news", "", "userid", f"{_TENCENT} head_url mb_nick_name mb_head_url uin coral_uid"),
    )
}
_ID = re.compile(r"(?i)id$|id_?str$|^(?:parent|root|previous|last|first|cursor|next_offset)$")
_ADDRESS = re.compile(r"(?i)url|uri|^(?:next|scheme)$")
_ANCHOR = re.compile(r"<a\b[^<>]*>")


def redact(node: Any, source: str, key: bytes | None) -> Any:
    """A raw page, or a part of it, without personal fields: what may be stored, and what adapters read."""
    persons, ids, cut = _RULES[source]
    if isinstance(node, list):
        return [scrub(item, markup=True) if isinstance(item, str) else redact(item, source, key) for item in node]
    if not isinstance(node, dict):
        return node
    redacted: dict[str, Any] = {}
    for field, value in node.items():
        if field in cut:
            continue
        name = scrub_id(field, source, key)  # a site may list people by their names
        if name in persons and isinstance(value, dict):
            redacted[name] = _hash_person(value, source, key)
        elif name in ids:
            redacted[name] = hash_user(source, str(value), key) if value else None
        elif isinstance(value, str):
            redacted[name] = _redact_text(name, value, source, key)
        else:
            redacted[name] = redact(value, source, key)
    return redacted


def _redact_text(name: str, value: str, source: str, key: bytes | None) -> str:
    if _ID.search(name):
        return scrub_id(value, source, key)
    if _ADDRESS.search(name):
        return scrub_address(value, source, key)
    return value if name == "created_at" else scrub(_ANCHOR.sub("<a>", value), markup=True)


def _hash_person(value: dict[str, Any], source: str, key: bytes | None) -> dict[str, Any]:
    member = value.get("member")
    inner = member if isinstance(member, dict) else value
    name = next((name for name in ("id", "userId", "mid") if inner.get(name)), None)
    return {name: hash_user(source, str(inner[name]), key)} if name else {}
