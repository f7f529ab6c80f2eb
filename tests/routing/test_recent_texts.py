"""What is kept for texts stays within its bound, whatever comes."""

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.routing.recent_texts import LONGEST, RecentTexts


def test_what_was_kept_for_a_text_is_found():
    recent = RecentTexts(len)
    recent.keep("a", "made of a")

    assert recent.find("a") == "made of a"
    assert recent.find("b") is None


def test_the_text_asked_for_longest_ago_is_dropped_first():
    recent = RecentTexts(len, limit=20)
    recent.keep("a", "8 agents")
    recent.keep("b", "8 agents")
    recent.find("a")

    recent.keep("c", "8 agents")

    assert [recent.find(text) is not None for text in "abc"] == [True, False, True]


def test_what_is_kept_again_takes_the_place_of_what_was():
    recent = RecentTexts(len, limit=20)
    for made in ("8 agents", "12 of them.."):
        recent.keep("a", made)
    recent.keep("b", "8 agents")

    assert (recent.find("a"), recent.find("b")) == ("12 of them..", "8 agents")


def test_more_than_the_bound_is_not_kept():
    recent = RecentTexts(len, limit=3)
    recent.keep("a", "four")

    assert recent.find("a") is None


def test_nothing_is_kept_of_a_text_that_is_too_long():
    recent = RecentTexts(len)
    recent.keep(LONGEST * "x", "kept")
    recent.keep(LONGEST * "x" + "x", "not kept")

    assert recent.find(LONGEST * "x") == "kept"
    assert recent.find(LONGEST * "x" + "x") is None


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 9))))
def test_all_together_never_exceed_the_bound(kept):
    recent = RecentTexts(len, limit=20)
    for text, size in kept:
        recent.keep(text, size * "x")

    found = [recent.find(text) for text in "abcdef"]
    assert sum(len(made) for made in found if made) <= 20
    assert not kept or recent.find(kept[-1][0]) == kept[-1][1] * "x"
