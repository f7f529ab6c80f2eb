"""The checker of histories finds everything that was planted, and accuses nobody who did nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.history import Kind, check
from tests.faults.planted import PLANTS, planted
from tests.faults.stories import Story, told

CASES = range(68)


@given(stories=st.lists(st.sampled_from(Story), max_size=15), seed=st.integers(0, 1_000_000))
def test_a_clean_history_is_not_accused(stories: list[Story], seed: int) -> None:
    verdict = check(told(stories, seed))

    accepted = [story for story in stories if story not in {Story.REFUSED, Story.SILENT}]
    repeated = {Story.RERUN_HERE, Story.RERUN_ELSEWHERE, Story.UNSTORED, Story.CANCELLED}
    assert verdict.violations == ()
    assert verdict.accepted == verdict.terminal == len(accepted)
    assert verdict.reruns == sum(story in repeated for story in stories)
    assert verdict.unknown == stories.count(Story.SILENT)


@pytest.mark.parametrize("number", CASES)
def test_a_planted_violation_is_found_and_nothing_else(number: int) -> None:
    kind, events = planted(number)

    verdict = check(events)

    assert [violation.kind for violation in verdict.violations] == [kind]


def test_every_kind_of_violation_is_planted() -> None:
    assert len(CASES) >= 50
    assert {kind for kind, _ in PLANTS} == set(Kind)
