"""Private particulars in a text: what is found, and the typed token that takes its place.

Patterns look at the plain form, without disguises, each in one pass; what they match is replaced in the original.
"""

import html
import ipaddress
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import polars as pl

from pipeline.collect.privacy.numbers import Span, find_numbers, find_spelled

TOKENS = ("URL", "EMAIL", "ID", "PHONE", "CARD", "IBAN", "IP", "PLATE", "HANDLE", "MENTION")

# ASCII look-arounds throughout: \b and \w match Chinese letters and would swallow what stands beside a number.
_REPLY_PREFIX = re.compile(r"(?:回复\s?@[^:：\s]{1,40}\s?[:：]\s?)+")
_STOP = r"""\s<>"'\ue000\u3000-\u303f\u3400-\u9fff\uff00-\uffef"""
_URL = re.compile(
    rf"(?:(?:https?|ftp)://|(?<![A-Za-z0-9.])www\.)[^{_STOP}]+"
    r"|(?<![A-Za-z0-9./])(?:t\.cn|b23\.tv|dwz\.cn|url\.cn|bit\.ly)/[A-Za-z0-9]+"
    r"|(?<![A-Za-z0-9./])(?:(?:t|wa|line)\.me|weibo\.c(?:om|n)|(?:x|twitter|facebook|instagram|linkedin|github|zhihu|douyin"
    rf"|tiktok|youtube)\.com|space\.bilibili\.com|discord\.gg)/[^{_STOP}]+",
    re.IGNORECASE,
)

_LOCAL = r"(?<![A-Za-z0-9._%+-])(?<![A-Za-z0-9._%+-]')[A-Za-z0-9._%+-]++(?:'[A-Za-z0-9._%+-]++)*+"
_EMAIL = re.compile(rf"{_LOCAL}@(?:[A-Za-z0-9-]++\.)+[A-Za-z]{{2,}}")
_OPEN, _CLOSE = r"[(\[{<（【「]\s?", r"\s?[)\]}>）】」]"
_SPELLED_EMAIL = re.compile(
    rf"{_LOCAL}(?P<at>\s?(?:@|#|{_OPEN}(?:at|@|艾特){_CLOSE}|艾特|小老鼠|圈a)\s?|\sat\s)"
    rf"(?P<host>[A-Za-z0-9-]++(?:\s?(?:[.。]|{_OPEN}(?:dot|点|點|\.){_CLOSE}|点|點|\sdot\s)\s?[A-Za-z0-9-]++){{0,3}}?)"
    rf"(?P<dot>\s?(?:[.。]|{_OPEN}(?:dot|点|點|\.){_CLOSE}|点|點|\sdot\s)\s?)"
    r"(?:com|cn|net|org|edu|gov|io|me|co|cc|tv|info|biz|uk|de|fr|jp|kr|tw|hk|us|ca|au|eu|ru|xyz|top|vip|test|example)"
    r"(?![A-Za-z0-9-])",
    re.IGNORECASE,
)
_PROVIDER = re.compile(
    r"(?i)qq|foxmail|163|126|139|189|yeah|sina|sohu|aliyun|gmail|outlook|hotmail|live|msn|yahoo|icloud|proton|gmx|mail"
)

_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,30}")
_IBAN_LENGTHS = {
    name: int(length) for length, names in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK", 21: "CH CR HR LI LV",
        22: "BG BH DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL", 24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items() for name in names.split()
}  # fmt: skip

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IP4 = re.compile(rf"(?<![0-9A-Za-z.])(?:{_OCTET}[.。]){{3}}{_OCTET}(?![0-9A-Za-z]|\.[0-9])")
_IP6 = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![0-9A-Za-z:])")
_VERSION = re.compile(
    r"(?i)(?:\bv|ver|version|版本?|固件|系统|更新|升级|build|release|chrome|windows|ios|android|firefox|edge|kernel|内核"
    r"|driver|驱动|section|§|第|chapter|章|节|条|oid|clause|rev)[\s./:：到至为是号]{0,3}$"
)
_ADDRESS_WORD = re.compile(r"(?i)\bip|地址|server|服务器|ping|host|dns|网关|登录|登陆|gateway")

_PASSPORT = re.compile(
    r"(?i)((?:护照|通行证|passport)(?:号码?|编号)?\s?(?:no\.?|number|#)?\s?(?:is|为|是)?[:：]?\s?)"
    r"(?:[A-Z]{1,2}[0-9]{7,8}|[0-9]{9})(?![0-9A-Za-z])"
)
_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_PLATE = re.compile(
    rf"[{_PROVINCES}][A-HJ-NP-Z][·•\- ]?"
    r"(?:[A-HJ-NP-Z0-9]{5}|[A-HJK][A-HJ-NP-Z0-9][0-9]{4}|[0-9]{5}[A-HJK]|[A-HJ-NP-Z0-9]{4}[学警港澳挂领])(?![A-Za-z0-9])"
)

_GAP = r"[ ._\-+*·|/]{0,2}"
_MESSENGER = (
    rf"微{_GAP}信|[薇威徽巍围唯维][信❤♥]|(?<![A-Za-z])[vV]{_GAP}(?:信|❤|♥)|扣扣|企鹅号?|绿泡泡|(?:加|➕|\+)\s?[vVqQ薇威](?:信|[xX])?"
    rf"|[qQ]{_GAP}群|电报|(?<![A-Za-z])(?:q{_GAP}q|v[ ._\-]?x|w[ ._\-]?x|we?i[ -]?xin|we[ -]?chat|telegram|whats ?app"
    r"|kakao(?: ?talk)?)"
)
_SITE = (
    r"(?<![A-Za-z])(?:line|ins(?:ta(?:gram)?)?|snap(?:chat)?|signal|discord|skype|alipay|tg|tele)|飞机|抖音|快手|小红书"
    r"|支付宝|(?<![A-Za-z0-9])[vVqQ]|[薇扣]"
)
_KIND = r"(?:账号|帐号|号码|号|群|id|码)"
_UNIT = r"(?!\s?(?:元|块|万|亿|人|个|年|月|日|次|位|名|条|分|秒|家|users|people|%))"
_HANDLE = re.compile(
    rf"((?:{_MESSENGER})(?:\s?{_KIND}?\s*(?:[:：=➡→]|是(?!\S{{0,20}}\s?[的旗公做家出推开]))\s*|\s?{_KIND}\s*"
    rf"|\s*(?=[A-Za-z_-]{{0,19}}[0-9])))(?:[A-Za-z0-9_-]{{5,}}+{_UNIT}|"
    r"[0-9](?:[ -]?[0-9]){6,}+|[零〇一二三四五六七八九幺]{6,}+)",
    re.IGNORECASE,
)
_NAMED_HANDLE = re.compile(  # of a site whose name is a word: with a colon or "id", and a digit in it
    rf"((?:{_SITE})\s?(?:(?:账号|帐号|号码?|id)\s?[:：=]?|[:：])\s?)(?=[A-Za-z_.-]{{0,19}}[0-9])(?=[A-Za-z0-9_.-]{{5}})"
    rf"[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]++)*+{_UNIT}|((?:加群|群号)\s?(?:号码?)?\s?[:：]?\s?)[0-9]{{6,}}+",
    re.IGNORECASE,
)
# any script and emoji; "3@5" is a price, "@ noon" no name
_MENTION = re.compile(
    r"(?:(?<![0-9])@(?![0-9]{1,4}(?:\W|$|[元块]))|@(?=[^\W0-9]))[\w\-·\U0001F000-\U0001FAFF\u2600-\u27BF]{1,30}"
)
_TAGS = re.compile(r"(?<!\U0001F3F4)[\U000E0020-\U000E007E]{5,}+")

_SEEN = "\ue000"  # stands, as often as it has letters, for what was found, so that nothing else is found in it
_ROUNDS = 6  # one or two are taken: "@one" behind a mail shows once the mail is gone
_LAST_RESORT = re.compile(rf"\[(?:{'|'.join(TOKENS)})\]|[^\s\u3400-\u9fff]+|[零〇一二三四五六七八九幺]+")

_DIGIT = r"[0-9零〇洞一幺壹二两贰三叁四肆五伍六陆七拐柒八捌九勾玖]"
_FEWEST_DIGITS = 7
# what hides: marks, blanks without width, digits and letters of other kinds
_DISGUISE = (
    r"[\p{Cf}\p{Mn}\p{Me}\p{No}\x{115F}\x{1160}\x{2800}\x{3164}\x{FF10}-\x{FF19}\x{FF20}-\x{FF3A}\x{FF41}-\x{FF5A}]"
    r"|[\x{1D400}-\x{1D7FF}\x{1F110}-\x{1F18F}\x{249C}-\x{24E9}\p{Greek}\p{Cyrillic}]|[\p{Nd}&&[^0-9]]"
)

Finder = Callable[[str], Iterator[Span]]


def find_particulars(text: str, *, markup: bool = False) -> list[Span]:
    """Where private particulars stand in a text: start, end and token ("" for the prefix of a reply), in order."""
    form = reveal(text, markup=markup)
    spans = [(*form.span(start, end), token) for start, end, token in _search(form.text)]
    for tags in _TAGS.finditer(text) if form.begins is not None else ():
        spelled = "".join(chr(ord(tag) - 0xE0000) for tag in tags[0])  # in characters that are not visible
        spans += [(*tags.span(), token) for _, _, token in islice(_search(spelled), 1)]
    return sorted(spans)


def _search(text: str) -> Iterator[Span]:
    lowered = text.lower()
    if prefix := _REPLY_PREFIX.match(text):
        yield *prefix.span(), ""
        text = _hide(text, [(*prefix.span(), "")])
    for sign, find in _FINDERS:
        if sign.search(lowered) and (spans := list(find(text))):
            yield from spans
            text = _hide(text, spans)


def _hide(text: str, spans: list[Span]) -> str:
    characters = list(text)
    for start, end, _ in spans:
        characters[start:end] = _SEEN * (end - start)
    return "".join(characters)


def _match(pattern: re.Pattern[str], token: str) -> Finder:
    def find(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            yield (match.end(match.lastindex) if match.lastindex else match.start()), match.end(), token

    return find


def _find_spelled_emails(text: str) -> Iterator[Span]:
    for match in _SPELLED_EMAIL.finditer(text):
        is_plain_sign = match["at"].strip().lower() in ("@", "#", "at")
        is_plain_dot = match["dot"].strip() in (".", "。")
        if not is_plain_sign or not is_plain_dot or _PROVIDER.search(match["host"]):
            yield *match.span(), "EMAIL"


def _find_ibans(text: str) -> Iterator[Span]:
    """International account numbers: the length of their country and the check digits of ISO 13616."""
    for match in _IBAN.finditer(text):
        places = [place for place in range(*match.span()) if text[place].isalnum()]
        length = _IBAN_LENGTHS.get(match[0][:2].upper(), 0)
        if not 0 < length <= len(places):
            continue
        end = places[length - 1] + 1
        value = "".join(text[place] for place in places[:length]).upper()
        behind = text[end : end + 1]
        is_whole = not (behind.isascii() and behind.isalnum())
        if is_whole and int("".join(str(int(c, 36)) for c in value[4:] + value[:4])) % 97 == 1:
            yield match.start(), end, "IBAN"


def _find_addresses(text: str) -> Iterator[Span]:
    """IP addresses that could be somebody's: no version, no address of one's own machine."""
    for match in _IP4.finditer(text):
        before = text[max(0, match.start() - 12) : match.start()]
        octets = [int(octet) for octet in re.split("[.。]", match[0])]
        is_number = max(octets) < 10 and not _ADDRESS_WORD.search(before)
        is_local = octets[0] in (0, 127, 255)
        if not (is_number or is_local or _VERSION.search(before)):
            yield *match.span(), "IP"
    for match in _IP6.finditer(text):
        has_groups = len(match[0].replace(":", " ").split()) >= 3 and any(c.isdigit() for c in match[0])
        with suppress(ValueError):
            if has_groups and not ipaddress.IPv6Address(match[0]).is_loopback:
                yield *match.span(), "IP"


# What a text in small letters must hold for a finder to be asked: most texts hold none of it. In the order of search.
_SIGNS: tuple[tuple[str, Finder], ...] = (
    (r"://|www\.|(?:t|dwz|url)\.cn/|b23\.tv/|bit\.ly/|\.me/|weibo\.c|\.com/|discord\.gg/", _match(_URL, "URL")),
    ("@", _match(_EMAIL, "EMAIL")),
    (
        r"@|[a-z0-9._%+-]\s?#\s?[a-z0-9-]|艾特|小老鼠|圈a|[(\[{<（【「]\s?at"
        r"| at [a-z0-9-]+ ?(?:\.[a-z]|[点點(\[{（【]|dot )",
        _find_spelled_emails,
    ),
    (r"[0-9][.。][0-9]{1,3}[.。][0-9]|:[0-9a-f]{0,4}:", _find_addresses),
    (r"[0-9]", _find_ibans),
    (r"[0-9]", find_numbers),
    (_DIGIT, find_spelled),
    (r"护照|通行证|passport", _match(_PASSPORT, "ID")),
    (rf"[{_PROVINCES}][a-z]", _match(_PLATE, "PLATE")),
    (
        r"[微薇威徽巍围唯维v].{0,2}[信❤♥]|扣扣|企鹅|绿泡泡|[加➕+]\s?[vq薇威]|q.{0,2}[群q]|电报|[vw][ ._-]?x|xin|chat"
        r"|telegram|whats|kakao",
        _match(_HANDLE, "HANDLE"),
    ),
    (
        r"(?:line|ins|insta|instagram|snap|snapchat|signal|discord|skype|alipay|tg|tele|飞机|抖音|快手|小红书|支付宝"
        r"|[vq薇扣])\s?(?:[账帐]?号|id|[:：])|加群|群号",
        _match(_NAMED_HANDLE, "HANDLE"),
    ),
    ("@", _match(_MENTION, "MENTION")),
)
_FINDERS = [(re.compile(sign), find) for sign, find in _SIGNS]
_MAY_HOLD = "(?i)" + "|".join([*(sign for sign, _ in _SIGNS if sign not in ("[0-9]", _DIGIT)), _DISGUISE])


def scrub(text: str, counts: Counter[str] | None = None, *, markup: bool = False) -> str:
    """The text with private particulars replaced by [URL], [EMAIL], [PHONE] and the other `TOKENS`."""
    counts = Counter() if counts is None else counts
    for _ in range(_ROUNDS):
        if not (spans := find_particulars(text, markup=markup)):
            return text
        parts, place = [], 0
        for start, end, token in spans:
            if start >= place:
                parts += [text[place:start], f"[{token}]" if token else ""]
                counts.update([token] if token else [])
                place = end
        text = "".join([*parts, text[place:]])
    return _LAST_RESORT.sub("[HANDLE]", text)


def scrub_column(texts: pl.Series, counts: Counter[str] | None = None) -> pl.Series:
    """`scrub` for a column; only rows that may hold something are looked at one by one."""
    is_suspect = (texts.str.count_matches(_DIGIT) >= _FEWEST_DIGITS) | texts.str.contains(_MAY_HOLD)
    rows = is_suspect.fill_null(value=False).arg_true()
    if not len(rows):
        return texts
    scrubbed = [scrub(text, counts) for text in texts.gather(rows)]
    return texts.clone().scatter(rows, scrubbed)  # a clone: scatter writes in place


# letters, signs and blanks that stand for themselves: a text of these alone is its own plain form
_PLAIN = (
    "\t\n\r\x20-\x7e·–—‘’“”…\u3001-\u301f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
    "\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff5e"
)
_ODD = re.compile(f"[^{_PLAIN}]")
_MARKUP = re.compile(
    r"<(?:/?(?:a|b|em|font|i|mark|s|span|strong|u)\b)[^<>]*>|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,31});?|"
    f"[^{_PLAIN}]"
)
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters without a shape
_LOOK_ALIKE = str.maketrans(  # of Cyrillic, Greek and Latin
    "аеорсухіјѕһԁԛԝвкмнтАВЕКМНОРСТУХІЈЅԚԜοαρνικΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɡƖ\u2010\u2011\u2012\u2212⁺",
    "aeopcyxijshdqwbkmhtABEKMHOPCTYXIJSQWoapvikABEZHIKMNOPTYXigl----+",
)
for _first, _letter in ((0x1F110, "A"), (0x1F150, "A"), (0x1F170, "A"), (0x249C, "a")):  # squared, circled, in brackets
    _LOOK_ALIKE |= {_first + i: ord(_letter) + i for i in range(26)}


class Form(NamedTuple):
    """The plain form and, for each of its characters, where it begins and ends in the original; None: the same."""

    text: str
    begins: "array[int] | None" = None
    ends: "array[int] | None" = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the original that a part of the plain form stands for, with the invisible that follows it."""
        if self.begins is None or self.ends is None:
            return start, end
        return self.begins[start], self.ends[end - 1]


def reveal(text: str, *, markup: bool = False) -> Form:
    """The text as its reader sees it; with `markup` also without inline tags, and with entities decoded."""
    is_markup = markup and ("&" in text or "<" in text)
    if not is_markup and not _ODD.search(text):
        return Form(text)
    parts: list[str] = []
    begins, ends, place = array("q"), array("q"), 0
    for start, end, character in _list_pieces(text, _MARKUP if is_markup else _ODD):
        parts += [text[place:start], character]
        begins.extend(range(place, start))
        ends.extend(range(place + 1, start + 1))
        if character:
            begins.append(start)
            ends.append(end)
        elif ends and end - start == 1 and ends[-1] == start:
            ends[-1] = end
        place = end
    begins.extend(range(place, len(text)))
    ends.extend(range(place + 1, len(text) + 1))
    plain = "".join([*parts, text[place:]])
    return Form(text) if plain == text else Form(plain, begins, ends)


def _list_pieces(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
    for piece in pattern.finditer(text):
        start, end = piece.span()
        value = html.unescape(piece[0]) if piece[0][0] == "&" else piece[0]
        if len(value) < 2:  # none for an entity of a character that HTML forbids
            yield start, end, read_character(value)
        elif value[0] == "<":
            yield start, end, ""
        else:  # no entity after all
            yield from ((start + i, start + i + 1, read_character(c)) for i, c in enumerate(piece[0]))


@lru_cache(maxsize=1 << 16)
def read_character(character: str) -> str:
    """The plain character that a reader takes this one for; empty for what is not visible."""
    if not _ODD.match(character):
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Mn", "Me", "Cs") or character in _FILLERS:
        return ""
    if (digit := unicodedata.digit(character, None)) is not None:
        return str(digit)
    composed = unicodedata.normalize("NFKC", character)
    return (composed if len(composed) == 1 else character).translate(_LOOK_ALIKE)
