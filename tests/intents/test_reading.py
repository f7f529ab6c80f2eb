from datetime import date

from dispatcher.intents.reading import read_text

TODAY = date(2026, 11, 30)


def test_a_text_is_read_in_the_language_it_is_written_in():
    assert read_text("你们几点营业", None, TODAY).language == "zh"
    assert read_text("when do you open", None, TODAY).language == "en"


def test_the_language_that_is_given_decides_how_it_is_read():
    american, chinese = (read_text("call 13800138000", language, TODAY) for language in ("en", "zh"))

    assert (american.language, chinese.language) == ("en", "zh")
    assert [entity.value for entity in chinese.entities] == ["+8613800138000"]


def test_relative_dates_count_from_the_day_that_is_given():
    days = [read_text("since yesterday", None, TODAY.replace(day=day)).entities[0].value for day in (29, 30)]

    assert days == ["2026-11-28", "2026-11-29"]
