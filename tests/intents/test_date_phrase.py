from datetime import date

import pytest

from dispatcher.intents.date_phrase import find_dates

SUNDAY = date(2026, 11, 29)


def _days(text: str, today: date = SUNDAY) -> list[str]:
    found = sorted(find_dates(text, today), key=lambda item: (item[0], -item[1]))
    return [day.isoformat() for _, _, day in found]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2025年3月1日", "2025-03-01"),
        ("2025/3/1", "2025-03-01"),
        ("2025.03.01", "2025-03-01"),
        ("去年12月5号", "2025-12-05"),
        ("12月5日", "2026-12-05"),
        ("1月5日", "2027-01-05"),
        ("昨天", "2026-11-28"),
        ("今天", "2026-11-29"),
        ("明天", "2026-11-30"),
        ("下周五", "2026-12-04"),
        ("下个星期天", "2026-12-06"),
        ("上周五", "2026-11-20"),
        ("上周", "2026-11-16"),
        ("周五", "2026-12-04"),
        ("星期日", "2026-11-29"),
        ("3天前", "2026-11-26"),
        ("2周后", "2026-12-13"),
        ("3个星期后", "2026-12-20"),
        ("3个周后", "2026-12-20"),
        ("3个礼拜前", "2026-11-08"),
        ("3星期后", "2026-12-20"),
        ("这周三次都没人接", "2026-11-23"),
        ("yesterday", "2026-11-28"),
        ("Today", "2026-11-29"),
        ("tomorrow", "2026-11-30"),
        ("last week", "2026-11-16"),
        ("next Friday", "2026-12-04"),
        ("last Friday", "2026-11-27"),
        ("last Sunday", "2026-11-22"),
        ("this wed", "2026-11-25"),
        ("on Monday", "2026-11-30"),
        ("Mar 3", "2027-03-03"),
        ("March 3rd, 2025", "2025-03-03"),
        ("3rd of March 2025", "2025-03-03"),
        ("May 3", "2027-05-03"),
        ("may 3?", "2027-05-03"),
        ("deliver it on may 3 please", "2027-05-03"),
        ("before the 3rd may", "2027-05-03"),
        ("the 3 of may", "2027-05-03"),
        ("we met may 3, 2025", "2025-05-03"),
        ("can it arrive may 3rd?", "2027-05-03"),
        ("3rd may please", "2027-05-03"),
        ("订单8829周五能到吗", "2026-12-04"),
        ("2 days ago", "2026-11-27"),
        ("in 2 weeks", "2026-12-13"),
        ("in 1 day", "2026-11-30"),
    ],
)
def test_a_date_is_read_relative_to_today(text, day):
    assert _days(text) == [day]


@pytest.mark.parametrize(
    "text",
    ["2025-13-45", "2月30日", "3/4/2025", "每周五", "I sat in the sun", "may I", "12025-01-01", "一周"],
)
def test_what_is_no_day_or_ambiguous_is_left_alone(text):
    assert _days(text) == []


@pytest.mark.parametrize(
    "text",
    [
        *("我每两周一次的保洁", "一周三次的课", "每2周一次", "隔周一次", "几周一次", "十周六次"),
        *("I may 3 times", "the first 3 may be late", "come what may 3"),
    ],
)
def test_how_often_or_how_many_is_no_day(text):
    assert _days(text) == []


def test_the_longer_word_is_read_whole():
    assert _days("the day after tomorrow") == ["2026-12-01"]
    assert _days("大后天") == ["2026-12-02"]


def test_days_outside_the_calendar_are_left_out():
    assert _days("昨天 上周 9999天前", date.min) == []
    assert _days("明天 next week in 9 days", date.max) == []
    assert _days("1月1日", date.max) == ["9999-01-01"]


def test_the_29th_of_february_is_looked_for_in_the_years_around():
    assert _days("2月29日", date(2027, 12, 1)) == ["2028-02-29"]
    assert _days("2月29日", date(2026, 6, 1)) == []
