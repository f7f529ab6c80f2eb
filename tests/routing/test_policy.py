"""The highest score wins; suspects come last; ties go by agent id."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.policy import highest_score
from dispatcher.routing.slots import Key


@dataclass(frozen=True)
class Stub:
    """Fulfils `policy.Scored`."""

    key: Key
    score: float
    is_suspect: bool


def _scored(agent: str, score: float, *, suspect: bool = False) -> Stub:
    return Stub(key=Key(Capability("c"), AgentId(agent)), score=score, is_suspect=suspect)


def _chosen(*candidates: Stub, floor: float = 0.35) -> str | None:
    found = highest_score(candidates, floor)
    return found.key.agent_id if found else None


def test_the_highest_score_wins():
    assert _chosen(_scored("a", 0.5), _scored("b", 0.7), _scored("c", 0.6)) == "b"


def test_a_suspect_goes_after_everybody_who_is_alive():
    assert _chosen(_scored("a", 0.9, suspect=True), _scored("b", 0.4)) == "b"
    assert _chosen(_scored("a", 0.9, suspect=True)) == "a"


def test_below_the_floor_nobody_is_chosen():
    assert _chosen(_scored("a", 0.349)) is None
    assert _chosen(_scored("a", 0.35)) == "a"
    assert _chosen(_scored("a", 0.2), floor=0.0) == "a"


def test_a_suspect_above_the_floor_goes_before_the_living_below_it():
    assert _chosen(_scored("a", 0.9, suspect=True), _scored("b", 0.1)) == "a"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([0.4, 0.5])), unique_by=lambda x: x[0]))
def test_equal_scores_go_by_agent_id_in_any_order(rows):
    candidates = [_scored(*row) for row in rows]

    assert _chosen(*candidates) == _chosen(*reversed(candidates))
    if rows:
        top = max(score for _, score in rows)
        assert _chosen(*candidates) == min(agent for agent, score in rows if score == top)
