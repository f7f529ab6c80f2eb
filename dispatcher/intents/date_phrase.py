"""Dates named in Chinese or English, read relative to a given day; pure.

Weeks begin on Monday. A week named alone ("上周", "last week") means its Monday. "next Friday"
is the Friday of the next calendar week, like 下周五; "last Friday" the latest one before today;
a weekday alone the next one, today included. A day without a year is the one nearest to today.
Orders of numbers that are read differently in different countries (3/4/2025) are left alone.
"""

import re
from collections.abc import Callable, Iterator
from datetime import MAXYEAR, MINYEAR, date, timedelta

_DAY_WORDS = {
    **dict.fromkeys(("大前天",), -3),
    **dict.fromkeys(("前天", "the day before yesterday", "day before yesterday"), -2),
    **dict.fromkeys(("昨天", "昨日", "昨晚", "yesterday", "last night"), -1),
    **dict.fromkeys(("今天", "今日", "今晚", "今早", "today", "tonight"), 0),
    **dict.fromkeys(("明天", "明日", "明晚", "明早", "tomorrow"), 1),
    **dict.fromkeys(("后天", "the day after tomorrow", "day after tomorrow"), 2),
    **dict.fromkeys(("大后天",), 3),
}
_WEEK_WORDS = {"上上": -2, "上": -1, "last": -1, "这": 0, "本": 0, "this": 0, "下": 1, "next": 1, "下下": 2}
_WEEKDAYS_ZH = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6}
_WEEKDAYS_EN = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_YEAR_WORDS = {"去年": -1, "今年": 0, "明年": 1}

_WEEKDAY_NAME = r"(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
_WEEKDAY_SHORT = r"(?P<weekday>mon|tues?|wed|thu(?:rs)?|fri|sat|sun)"
"""Only after a week word: "sat" and "sun" are words of their own."""
_MONTH_NAME = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY_NUMBER = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR_AFTER = r"(?:,?\s+(?P<year>\d{4}))?"

_LOOKED_BACK = 16
"""Characters before a date: longer than any preposition with "the"."""

Reader = Callable[[re.Match[str], date], date | None]


def find_dates(text: str, today: date) -> Iterator[tuple[int, int, date]]:
    """Start, end and day of each date; readings may overlap, impossible days are left out."""
    readers = (*_WORD_READERS, *_NUMBER_READERS) if _DIGIT.search(text) else _WORD_READERS
    for pattern, read in readers:
        for found in pattern.finditer(text):
            day = read(found, today)
            if day is not None:
                yield found.start(), found.end(), day


def _day_word(found: re.Match[str], today: date) -> date | None:
    return _shifted(today, _DAY_WORDS[found[0].lower()])


def _numbers(found: re.Match[str], today: date) -> date | None:
    return _day(int(found["year"]), int(found["month"]), int(found["day"]))


def _month_day(found: re.Match[str], today: date) -> date | None:
    month, day = int(found["month"]), int(found["day"])
    word = found["word"]
    return _day(today.year + _YEAR_WORDS[word], month, day) if word else _nearest(month, day, today)


def _month_name(found: re.Match[str], today: date) -> date | None:
    month, day = _MONTHS.index(found["month"][:3].lower()) + 1, int(found["day"])
    year = found["year"]
    if found["month"] == "may" and not (year or _is_said_as_date(found)):
        return None
    return _day(int(year), month, day) if year else _nearest(month, day, today)


def _is_said_as_date(found: re.Match[str]) -> bool:
    """Of a small "may" and a number: an ordinal, behind a preposition, or all there is.

    "may 3rd", "3 of may", "on may 3", "may 3?"; not "I may 3 times".
    """
    text, start = found.string, found.start()
    is_alone = start == 0 and len(text) <= found.end() + 1
    before = text[max(0, start - _LOOKED_BACK) : start]
    return is_alone or (_ORDINAL_OR_OF.search(found[0]) or _DATE_AHEAD.search(before)) is not None


def _week(found: re.Match[str], today: date) -> date | None:
    weekday = found["weekday"]
    return _in_week(today, _WEEK_WORDS[found["week"].lower()], _WEEKDAYS_ZH.get(weekday or "一", 0))


def _weekday_zh(found: re.Match[str], today: date) -> date | None:
    return _coming(today, _WEEKDAYS_ZH[found["weekday"]])


def _weekday_en(found: re.Match[str], today: date) -> date | None:
    weekday = _WEEKDAYS_EN.index(found["weekday"][:3].lower())
    match (found["week"] or "").lower():
        case "last":
            return _shifted(today, -((today.weekday() - weekday - 1) % 7 + 1))
        case "next" | "this" as week:
            return _in_week(today, _WEEK_WORDS[week], weekday)
        case _:
            return _coming(today, weekday)


def _distance(found: re.Match[str], today: date) -> date | None:
    unit = found["unit"].lower().lstrip("个")
    days = int(found["count"]) * (7 if unit.startswith(("周", "week", "星期", "礼拜")) else 1)
    return _shifted(today, -days if found["way"].lower() in {"前", "之前", "以前", "ago"} else days)


def _distance_ahead(found: re.Match[str], today: date) -> date | None:
    return _shifted(today, int(found["count"]) * (7 if found["unit"].lower() == "week" else 1))


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _nearest(month: int, day: int, today: date) -> date | None:
    years = range(max(MINYEAR, today.year - 1), min(MAXYEAR, today.year + 1) + 1)
    days = [found for year in years if (found := _day(year, month, day))]
    return min(days, key=lambda found: abs(found - today), default=None)


def _shifted(today: date, days: int) -> date | None:
    try:
        return today + timedelta(days=days)
    except OverflowError:
        return None


def _in_week(today: date, weeks: int, weekday: int) -> date | None:
    return _shifted(today, 7 * weeks + weekday - today.weekday())


def _coming(today: date, weekday: int) -> date | None:
    return _shifted(today, (weekday - today.weekday()) % 7)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


_ZH_WORDS = "|".join(sorted((w for w in _DAY_WORDS if not w.isascii()), key=len, reverse=True))
_EN_WORDS = "|".join(sorted((w for w in _DAY_WORDS if w.isascii()), key=len, reverse=True))

_DIGIT = re.compile(r"\d", re.ASCII)
_DATE_AHEAD = _compiled(r"\b(?:on|by|to|of|for|from|till|until|after|before|since|around)\s(?:the\s)?\Z")
_ORDINAL_OR_OF = _compiled(r"\d(?:st|nd|rd|th)\b|\sof\s")
_COUNTED = "每隔半数几一二两三四五六七八九十"
_ONE_COUNTED = r"(?<!(?<![\d/.-])\d)"
"""Before 周: "两周一次" and "2周一次" mean two weeks, no Monday; behind a longer number it is one."""
_WORD_READERS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (_compiled(rf"{_ZH_WORDS}|\b(?:{_EN_WORDS})\b"), _day_word),
    (
        _compiled(r"(?P<week>上上|下下|[上下这本])个?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天](?!次))?"),
        _week,
    ),
    (_compiled(r"\b(?P<week>last|next|this)\s+week\b(?P<weekday>)"), _week),
    (
        _compiled(
            rf"(?<![上下这本个{_COUNTED}]){_ONE_COUNTED}(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])"
        ),
        _weekday_zh,
    ),
    (_compiled(rf"\b(?:(?P<week>last|next|this)\s+)?{_WEEKDAY_NAME}\b"), _weekday_en),
    (_compiled(rf"\b(?P<week>last|next|this)\s+{_WEEKDAY_SHORT}\b"), _weekday_en),
)
_NUMBER_READERS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (
        _compiled(r"(?<![\d./-])(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})(?![\d/-])"),
        _numbers,
    ),
    (
        _compiled(
            r"(?<!\d)(?P<year>\d{4})\s?年\s?(?P<month>\d{1,2})\s?月\s?(?P<day>\d{1,2})\s?[日号]?(?!\d)"
        ),
        _numbers,
    ),
    (
        _compiled(
            r"(?P<word>去年|今年|明年)?(?<!\d)(?<!\d年)(?P<month>\d{1,2})\s?月\s?(?P<day>\d{1,2})\s?[日号]"
        ),
        _month_day,
    ),
    (_compiled(rf"\b{_MONTH_NAME}\s+{_DAY_NUMBER}\b{_YEAR_AFTER}"), _month_name),
    (_compiled(rf"\b{_DAY_NUMBER}\s+(?:of\s+)?{_MONTH_NAME}(?![a-z]){_YEAR_AFTER}"), _month_name),
    (
        _compiled(
            r"(?<![\d.])(?P<count>\d{1,4})\s?(?P<unit>天|个?(?:周|星期|礼拜)|days?|weeks?)\s?"
            r"(?P<way>之前|以前|前|之后|以后|后|ago\b)"
        ),
        _distance,
    ),
    (_compiled(r"\bin\s+(?P<count>\d{1,4})\s+(?P<unit>day|week)s?\b"), _distance_ahead),
)
