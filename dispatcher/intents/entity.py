"""Finds the key entities of a message: order numbers, phone numbers, dates, amounts."""

import re
from collections.abc import Iterable, Iterator
from datetime import date

from dispatcher.intents.date_phrase import find_dates
from dispatcher.intents.phone import find_phones
from dispatcher.intents.plan import Entity, EntityKind

MAX_ENTITIES = 64
"""Entities kept of one message; those further down are ignored, which bounds the task frame."""

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0xFFE5: 0xA5}
del _FULL_WIDTH[ord("，")]
"""One character for one, so that offsets hold. The comma stays: "200，300元" names two numbers."""
_FULL_WIDTH_THOUSANDS = re.compile(r"(?<=[０-９])，(?=[０-９]{3})")
_DIGIT = re.compile(r"\d")
"""In any script, as phone numbers may be written; without one there is nothing but dates in words."""

_NUMBER = r"(?<![\d.])(?<!\d,)(?P<number>\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,4})?|\d{1,12}(?:\.\d{1,4})?)(?!\d)"
_UNIT = (
    r"元|块钱?|人民币|美元|欧元|港币|日元|(?:rmb|cny|usd|eur|yuan|dollars?|bucks|euros?|pounds?)(?![A-Za-z])"
)
_AMOUNTS = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        rf"(?:[¥$€£]|\b(?:rmb|cny|usd|eur))\s?{_NUMBER}(?P<scale>[万千])?",
        rf"{_NUMBER}\s?(?P<scale>[万千])?\s?(?:{_UNIT})",
        r"(?<![\d.])(?<!\d,)(?P<number>\d{1,3}(?:,\d{3}){1,4}\.\d{2})(?P<scale>)(?![.,]?\d)",
    )
)
_SCALES = {"万": 10_000, "千": 1_000}

_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{2,39}(?![A-Za-z0-9_-])"
_ONE_DIGIT = r"(?=[A-Za-z_-]{0,8}\d)"
_FOUR_DIGITS = r"(?=(?:[A-Za-z_-]{0,8}\d){4})"
_NO_YEAR = r"(?!(?:19|20)\d\d\s?年)"
_NAMED_NUMBER = (
    r"(?:(?<!快递)(?<!物流)(?<!运)单号|订单编?号|\border\s(?:number|no\.?|id)|(?<![A-Za-z0-9&])#)"
    r"\s{0,3}(?:是|为|is\b)?\s{0,3}[:#]{0,2}\s{0,3}"
)
_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        rf"{_NAMED_NUMBER}(?P<id>{_ONE_DIGIT}{_ID})",
        rf"(?:订单|\border)\s{{0,3}}[:#]?\s{{0,3}}{_NO_YEAR}(?P<id>{_FOUR_DIGITS}{_ID})",
        rf"(?<![A-Za-z0-9_-])(?<!尾号)(?P<id>{_FOUR_DIGITS}{_ID})\s?(?:号|这个|这笔|的)?订单",
    )
)
"""A number of any length after "order number", four digits or more beside a bare "order" that are no year."""
_Found = tuple[EntityKind, int, int, str | float]
_KIND_ORDER = (EntityKind.ORDER_NUMBER, EntityKind.PHONE, EntityKind.DATE, EntityKind.AMOUNT)


def extract_entities(text: str, *, language: str, today: date) -> tuple[Entity, ...]:
    """The entities in the order of the text, not overlapping, at most MAX_ENTITIES.

    Of overlapping readings the longest wins, then order number, phone, date, amount.
    `language` decides how phone numbers without a country code are read; relative dates
    count from `today`. Full-width digits and signs are read like half-width ones.
    """
    plain = text if text.isascii() else _FULL_WIDTH_THOUSANDS.sub(",", text).translate(_FULL_WIDTH)
    readings = list(_dates(plain, today))
    if _DIGIT.search(plain):
        readings += [*_orders(plain), *_phones(plain, language), *_amounts(plain)]
    found = _without_overlaps(readings)
    return tuple(
        Entity(kind=kind, text=text[start:end], value=value, start=start, end=end)
        for kind, start, end, value in found[:MAX_ENTITIES]
    )


def _orders(text: str) -> Iterator[_Found]:
    for pattern in _ORDERS:
        for found in pattern.finditer(text):
            yield EntityKind.ORDER_NUMBER, found.start("id"), found.end("id"), found["id"]


def _phones(text: str, language: str) -> Iterator[_Found]:
    for start, end, number in find_phones(text, language):
        yield EntityKind.PHONE, start, end, number


def _dates(text: str, today: date) -> Iterator[_Found]:
    for start, end, day in find_dates(text, today):
        yield EntityKind.DATE, start, end, day.isoformat()


def _amounts(text: str) -> Iterator[_Found]:
    for pattern in _AMOUNTS:
        for found in pattern.finditer(text):
            value = float(found["number"].replace(",", "")) * _SCALES.get(found["scale"] or "", 1)
            yield EntityKind.AMOUNT, found.start(), found.end(), value


def _without_overlaps(found: Iterable[_Found]) -> list[_Found]:
    kept: list[_Found] = []
    taken: set[int] = set()
    for reading in sorted(found, key=lambda item: (item[1] - item[2], _KIND_ORDER.index(item[0]), item[1])):
        covered = range(reading[1], reading[2])
        if taken.isdisjoint(covered):
            taken.update(covered)
            kept.append(reading)
    return sorted(kept, key=lambda item: item[1])
