import pytest

from dispatcher.intents.recent_readings import LONGEST, RecentReadings


class Reader:
    """Puts a mark behind a text and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str, mark: str = "") -> str:
        self.asked.append(text)
        return text + mark


@pytest.fixture
def reader() -> Reader:
    return Reader()


def test_a_text_that_comes_again_is_not_read_again(reader):
    recent = RecentReadings(reader)

    assert [recent("a"), recent("a")] == ["a", "a"]
    assert reader.asked == ["a"]


def test_the_same_text_is_another_one_with_other_arguments(reader):
    recent = RecentReadings(reader)

    assert [recent("a", "."), recent("a", "!"), recent("a", mark=".")] == ["a.", "a!", "a."]


def test_a_long_text_is_read_each_time(reader):
    recent = RecentReadings(reader)
    kept, long = "a" * LONGEST, "a" * (LONGEST + 1)

    for text in (kept, long, kept, long):
        assert recent(text) == text

    assert reader.asked == [kept, long, long]


def test_the_text_used_longest_ago_is_dropped_first(reader):
    recent = RecentReadings(reader, limit=2)

    for text in "abacab":
        recent(text)

    assert reader.asked == ["a", "b", "c", "b"]
