"""A stored decision reads back as it was."""

import orjson
import pytest

from dispatcher.identifiers import AgentId, Capability
from dispatcher.records import replace
from dispatcher.routing.decision import Candidate, Decision, Option, Outcome, Rejection, Weights
from dispatcher.routing.ranking import CapabilityScore, Ranking
from dispatcher.routing.record import (
    decision_document,
    ranking_document,
    read_decision,
    read_ranking,
)


def _candidate(agent, rejection):
    return Candidate(
        agent_id=agent,
        capability=Capability("track"),
        cosine=0.5,
        similarity=0.9,
        success=0.8,
        headroom=1.0,
        score=0.89,
        rejection=rejection,
    )


@pytest.fixture
def decision():
    return Decision(
        text="快递到哪了",
        outcome=Outcome.SELECTED,
        reason="highest_score",
        capability=Capability("track"),
        agent_id=AgentId("a"),
        similarity=0.9,
        score=0.89,
        scope_score=0.4,
        scope_floor=0.2,
        candidates=(_candidate("a", None), _candidate("b", Rejection.OFFLINE)),
        left_out={"other_capability": 7},
        weights=Weights(),
        encoder_id="encoder",
        registry_version=3,
        calibration="self",
        elapsed_ms=0.25,
    )


def test_it_reads_back_equal(decision):
    assert read_decision(decision_document(decision)) == decision
    unavailable = replace(decision, outcome=Outcome.UNAVAILABLE, agent_id=None, score=None, retry_after_s=5)
    assert read_decision(decision_document(unavailable)) == unavailable


def test_advice_reads_back_and_a_decision_from_before_it_had_none(decision):
    advised = replace(decision, advice=("split",))
    earlier = orjson.loads(decision_document(decision))
    del earlier["advice"]

    assert read_decision(decision_document(advised)) == advised
    assert read_decision(orjson.dumps(earlier).decode()) == decision


def test_what_came_later_reads_back_and_a_document_without_it_has_none(decision):
    whole = replace(
        decision,
        winner=Capability("track"),
        contrast=0.1,
        ranked_text="parcel 快递到哪了",
        refused_for="below",
        own_similarity=0.2,
        own_candidates=(_candidate("c", Rejection.BELOW_SCOPE_FLOOR),),
    )
    earlier = orjson.loads(decision_document(decision))
    for name in ("winner", "contrast", "ranked_text", "refused_for", "own_similarity", "own_candidates"):
        del earlier[name]

    assert read_decision(decision_document(whole)) == whole
    assert read_decision(orjson.dumps(earlier).decode()) == decision


def test_options_read_back_and_a_document_without_them_has_none(decision):
    asked = replace(decision, outcome=Outcome.CLARIFY, options=(Option(Capability("track"), 0.9),))
    before = orjson.loads(decision_document(decision))
    del before["options"]

    assert read_decision(decision_document(asked)) == asked
    assert read_decision(orjson.dumps(before).decode()) == decision


def test_enumerations_are_read_as_such(decision):
    found = read_decision(decision_document(decision))

    assert found.outcome is Outcome.SELECTED
    assert found.candidates[1].rejection is Rejection.OFFLINE


def test_what_a_later_version_adds_is_ignored(decision):
    document = orjson.loads(decision_document(decision)) | {"new": 1}
    document["candidates"][0]["new"] = 2

    assert read_decision(orjson.dumps(document).decode()) == decision


def test_a_ranking_reads_back_equal():
    score = CapabilityScore(
        capability=Capability("track"),
        agent_cosines={AgentId("a"): 0.5},
        cosine=0.5,
        similarity=0.9,
        score=0.55,
    )
    ranking = Ranking(
        text="快递到哪了",
        capabilities=(score,),
        scope_score=0.4,
        scope_floor=0.2,
        in_scope=True,
        encoder_id="encoder",
        registry_version=3,
        calibration="self",
        contrast=0.1,
        scale=0.3,
        advice=("split", "choice"),
    )

    assert read_ranking(ranking_document(ranking)) == ranking
