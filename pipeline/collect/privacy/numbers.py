"""Numbers that lead to a person: telephones, identity cards, bank cards; digits are read as runs of groups."""

import re
from collections.abc import Iterator
from typing import NamedTuple

Span = tuple[int, int, str]  # start, end, token

_RUN = re.compile(r"[0-9](?:[ .()（）\-–—_·]{0,3}[0-9])*+")
_GROUP = re.compile(r"[0-9]+")
_FEWEST, _MOST = 7, 19  # digits of a number
_GROUPS = 8  # of a number, unless it is spelled digit by digit

_CHINESE = {
    ord(letter): str(digit)
    for digit, letters in enumerate(
        ("零〇洞", "一幺壹", "二两贰", "三叁", "四肆", "五伍", "六陆", "七拐柒", "八捌", "九勾玖")
    )
    for letter in letters
}
_CHINESE_DIGIT = "".join(map(chr, _CHINESE))
_CHINESE_RUN = re.compile(f"[0-9{_CHINESE_DIGIT}](?:[ .\\-–—·、]{{0,3}}[0-9{_CHINESE_DIGIT}])*+")

_MOBILE = {(11,), (3, 8), (7, 4), (3, 4, 4), (3, 3, 5), (1,) * 11}
_MOBILE_NAMED = {(5, 6), (6, 5), (4, 4, 3), (4, 3, 4), (3, 2, 2, 2, 2), (8, 3), (4, 7)}  # beside a word for telephone
_LANDLINE = {(3, 8), (3, 7), (4, 7), (4, 8), (3, 4, 4), (4, 4, 4), (4, 3, 4), (3, 3, 4)}
_LOCAL = {(8,), (7,), (4, 4), (3, 4)}
_CARD = {(4, 4, 4, 4), (4, 4, 4, 4, 1), (4, 4, 4, 4, 2), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4), (6, 13), (6, 10)}
_IDENTITY = {(18,), (6, 8, 4), (6, 4, 4, 4), (17,), (6, 8, 3), (6, 4, 4, 3)}

_FOREIGN = {(5, 5), (3, 3, 4), (1, 3, 3, 4), (3, 2, 4), (6, 6, 3)}
_GLUED = {(shape[0] + size, *shape[1:]) for shape in _MOBILE | _MOBILE_NAMED for size in (2, 4)}  # to 86 or 0086
_SHAPES = _MOBILE | _MOBILE_NAMED | _GLUED | _LANDLINE | _LOCAL | _CARD | _IDENTITY | _FOREIGN

_IS_MOBILE = re.compile(r"1[3-9][0-9]{9}")
_IS_LANDLINE = re.compile(r"0(?:10|2[0-9]|[3-9][0-9]{2})[1-9][0-9]{6,7}")
_IS_TRUNK = re.compile(r"0[1-9][0-9]{8,10}")  # of other countries too, where dashes or blanks part it
_IS_AMERICAN = re.compile(r"1?[2-9][0-9]{2}[2-9][0-9]{6}")
_FREE_OF_CHARGE = re.compile(r"1?(?:400|8(?:00|33|44|55|66|77|88))")  # a firm's line leads to no person
_ISSUER = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}|2(?:2[2-9]|[3-6][0-9]|7[01])[0-9]{13}|3[47][0-9]{13}"
    r"|62[0-9]{14,17}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|220[0-4][0-9]{12}|955[89][0-9]{15}"
)
_COUNTRY = re.compile(
    r"1|7|2[07]|2[1-69][0-9]|3[0-469]|3[578][0-9]|4[013-9]|42[0-9]|5[1-8]|5[09][0-9]|6[0-6]|6[7-9][0-9]"
    r"|8[1246]|8[578][0-9]|9[0-58]|9[679][0-9]"
)
_DECIMALS = re.compile(r"\.[0-9]{1,3}(?![0-9])")
_PROVINCE = re.compile(r"1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3]")
_IDENTITY_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)

_NEAR = 12  # characters before a number in which a word says what it is
_TELEPHONE = re.compile(
    r"(?i)电话|手机|座机|热线|联系|拨|打|致电|来电|号码|短信|传真|tel|phone|call|mobile|cell|whatsapp|fax|text|dial|ring"
    r"|number"
)
_TELEPHONE_AT = re.compile(r"(?i)(?:电话|座机|手机号?|\btel|\bphone|☎|📞)\s?(?:号码?|number|no)?[ .:：是]{0,3}$")
_OTHER_NUMBER = re.compile(
    r"(?i)单号|订单|运单|编号|流水|货号|批号|序列号|型号|期号|条码|房间号|案号|文号|order|tracking|serial|isbn|issn|doi|arxiv|pmid|status/"
    r"|sku|ticket|invoice|u(?:ser)?[_ ]?id[:： #]|0x$"
)
_IDENTITY_WORD = re.compile(r"(?i)身份|证号|证件|sfz|identity")


class _Row(NamedTuple):
    text: str
    start: int
    end: int
    shape: tuple[int, ...]
    digits: str
    is_whole: bool  # whether the run has no other group
    has_plus: bool

    @property
    def before(self) -> str:
        return self.text[max(0, self.start - _NEAR) : self.start]

    @property
    def is_telephone(self) -> bool:
        """Whether a word says so."""
        return bool(_TELEPHONE.search(self.before))

    def gaps(self) -> str:
        return "".join(c for c in self.text[self.start : self.end] if not c.isdigit())

    def neighbours(self) -> list[bool]:
        """Whether a Latin letter stands before, and one behind."""
        around = self.text[max(0, self.start - 1) : self.start], self.text[self.end : self.end + 1]
        return [c.isascii() and c.isalpha() for c in around]


def find_numbers(text: str) -> Iterator[Span]:
    """Numbers in a plain form that lead to a person, in order, each with its token: PHONE, ID or CARD."""
    for run in _RUN.finditer(text):
        if run.end() - run.start() >= _FEWEST:
            yield from _search_run(text, *run.span())


def find_spelled(text: str) -> Iterator[Span]:
    """Telephones and identity cards written, in whole or in part, in Chinese numerals: 一三八, 幺三八, 壹叁捌."""
    for run in _CHINESE_RUN.finditer(text):
        value = run[0].translate(_CHINESE)
        if len(value) >= _FEWEST and value != run[0]:
            for start, end, kind in _search_run(value.replace("、", " "), 0, len(value)):
                if kind != "CARD":
                    yield run.start() + start, run.start() + end, kind


def _search_run(text: str, start: int, end: int) -> Iterator[Span]:
    groups = [group.span() for group in _GROUP.finditer(text, start, end)]
    place = 0
    while place < len(groups):
        kinds = ((row, _name_kind(row)) for row in _list_rows(text, groups, place))
        row, kind = next(((row, kind) for row, kind in kinds if kind), (None, None))
        if row and kind:
            yield _widen(row, kind)
        place += len(row.shape) if row else 1


def _list_rows(text: str, groups: list[tuple[int, int]], place: int) -> Iterator[_Row]:
    first = groups[place][0]
    total, sizes = 0, []
    for count, (start, end) in enumerate(groups[place : place + 15], 1):
        total += end - start
        if total > _MOST:
            break
        if total >= _FEWEST and (total in (11, 13) if total == count else count <= _GROUPS):
            sizes.append(count)
    sign = text[max(0, first - 3) : first].rstrip("(（")
    has_plus = sign.endswith("+") and not sign[-2:-1].isalnum()
    for count in reversed(sizes):
        part = groups[place : place + count]
        digits = "".join(text[start:end] for start, end in part)
        shape = tuple(end - start for start, end in part)
        may_be_dialled = digits[0] == "0" and len(digits) <= 15 and shape.count(1) < 3
        is_known = len(shape) == 1 or shape in _SHAPES or shape[1:] in _MOBILE | _MOBILE_NAMED
        if has_plus or is_known or may_be_dialled:
            yield _Row(text, first, part[-1][1], shape, digits, count == len(groups), has_plus)


def _widen(row: _Row, kind: str) -> Span:
    start, end = row.start, row.end
    if kind == "PHONE":
        before = row.text[max(0, start - 2) : start]
        start -= 2 if before == "(+" else before[-1:] in ("(", "（", "+")
    return start, end + (kind == "ID" and sum(row.shape) == 17), kind


def _name_kind(row: _Row) -> str | None:
    if len(row.shape) == 1 and _is_fraction(row):
        return None
    if _is_identity(row):
        return "ID"
    if row.has_plus:
        return "PHONE" if _is_international(row.digits, row.shape) else None
    if _OTHER_NUMBER.search(row.before) and not row.is_telephone:
        return None
    if _is_mobile(row) or _is_landline(row) or _is_american(row) or _is_named(row):
        return "PHONE"
    return "ID" if _is_security_number(row) else "CARD" if _is_card(row) else None


def _is_fraction(row: _Row) -> bool:
    """Whether the digits are the part of a decimal number before or behind its point."""
    before = row.text[max(0, row.start - 2) : row.start]
    return bool(_DECIMALS.match(row.text, row.end)) or (before[:1].isdecimal() and before[1:] == ".")


def _is_international(digits: str, shape: tuple[int, ...]) -> bool:
    country = _COUNTRY.match(digits)
    national = digits[country.end() :] if country else ""
    if digits.startswith("86"):
        return bool(_IS_MOBILE.fullmatch(national) or _IS_LANDLINE.fullmatch("0" + national.lstrip("0")))
    if not country or national.endswith("00000") or len(set(national)) < 3:
        return False
    if country[0] == "1":
        return bool(_IS_AMERICAN.fullmatch(national)) and len(national) == 10
    return 7 <= len(national) <= 12 and len(digits) >= 9 + (len(shape) == 1)


def _is_mobile(row: _Row) -> bool:
    prefixes = (code for code in ("0086", "86") if row.digits.startswith(code) and len(row.digits) == 11 + len(code))
    prefix_length = len(next(prefixes, ""))
    digits, rest = row.digits[prefix_length:], row.shape[0] - prefix_length
    shape = ((rest,) if rest else ()) + row.shape[1:]
    if rest < 0 or not _IS_MOBILE.fullmatch(digits) or all(row.neighbours()):
        return False
    if row.shape == (1,) * 11 and not row.is_whole:
        return False
    return row.is_telephone if shape in _MOBILE_NAMED else shape in _MOBILE


def _is_landline(row: _Row) -> bool:
    if any(row.neighbours()):
        return False
    if len(row.shape) == 1:
        return row.is_telephone and bool(_IS_LANDLINE.fullmatch(row.digits))
    return row.shape in _LANDLINE and bool(_IS_TRUNK.fullmatch(row.digits))


def _is_american(row: _Row) -> bool:
    shape = row.shape[1:] if row.shape[0] == 1 and row.digits[0] == "1" else row.shape
    if shape not in ((3, 3, 4), (10,)) or _FREE_OF_CHARGE.match(row.digits):
        return False
    if shape == (3, 3, 4) and row.gaps().strip():  # "Tel(704) 555-0147Website" lost a line's end
        return row.text[row.end : row.end + 1] != "-"
    return row.is_telephone and bool(_IS_AMERICAN.fullmatch(row.digits))


def _is_named(row: _Row) -> bool:
    """Whether a word says that it is a telephone, where its shape alone could be anything."""
    if row.shape in _LOCAL:
        return bool(_TELEPHONE_AT.search(row.before)) and row.digits[0] in "2345678"
    if row.digits.startswith("00") and row.shape[0] in (2, 4, 5):
        return _is_international(row.digits[2:], row.shape) and len(row.shape) > 2
    return row.is_telephone and (row.shape == (5, 5) or (row.digits[0] == "0" and 9 <= len(row.digits) <= 12))


def _is_security_number(row: _Row) -> bool:
    """A social security number of the United States, 3-2-4 with dashes."""
    digits = row.digits
    has_parts = digits[:3] not in ("000", "666") and digits[0] != "9" and digits[3:5] != "00" and digits[5:] != "0000"
    return row.shape == (3, 2, 4) and row.gaps() == "--" and has_parts and not any(row.neighbours())


def _is_card(row: _Row) -> bool:
    """A bank card: the first digits of an issuer, its length, and the check digit of Luhn (ISO 7812)."""
    is_written_so = len(row.shape) == 1 or row.shape in _CARD
    if not is_written_so or any(row.neighbours()) or not _ISSUER.fullmatch(row.digits):
        return False
    doubled = "".join(str(int(digit) * (1 + place % 2)) for place, digit in enumerate(reversed(row.digits)))
    return sum(map(int, doubled)) % 10 == 0


def _is_identity(row: _Row) -> bool:
    """A Chinese identity card: province, date of birth and the check digit of GB 11643; the old ones of 15 digits
    have none, so a word must say what they are.
    """
    digits = row.digits
    if not _PROVINCE.match(digits):
        return False
    if row.shape in ((15,), (6, 6, 3)):
        has_word = _IDENTITY_WORD.search(row.before) is not None
        return has_word and _is_date(digits[8:12]) and not any(row.neighbours())
    if row.shape not in _IDENTITY:
        return False
    end = row.end + 18 - len(digits)  # behind an X
    digits += row.text[row.end : end].upper()
    is_letter_before, _ = row.neighbours()
    behind = row.text[end : end + 1]
    if len(digits) != 18 or is_letter_before or (behind.isascii() and behind.isalnum()):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(digits, _IDENTITY_WEIGHTS, strict=False))
    is_of_our_time = digits[6:8] in ("18", "19", "20") and _is_date(digits[10:14])
    return is_of_our_time and "10X98765432"[total % 11] == digits[17]


def _is_date(digits: str) -> bool:
    return "01" <= digits[:2] <= "12" and "01" <= digits[2:] <= "31"
