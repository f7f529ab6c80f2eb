"""Decisions as they are stored, made by hand."""

from typing import Any

from dispatcher.identifiers import RequestId
from dispatcher.routing.decision import Candidate, Decision, Outcome, Rejection, Weights
from dispatcher.tuning.decisions.decision_log import Entry
from dispatcher.tuning.decisions.replay import StoredDecision


def candidate(agent="a", capability="refund", rejection=None, **factors) -> Candidate:
    known: dict[str, Any] = {"cosine": 0.6, "similarity": 0.8, "success": 0.9, "headroom": 0.5, "score": 0.77}
    return Candidate(agent_id=agent, capability=capability, rejection=rejection, **(known | factors))


def decision(*candidates, outcome=Outcome.SELECTED, **given) -> Decision:
    chosen = next((one for one in candidates if one.rejection is None), None)
    known: dict[str, Any] = {
        "text": "refund me",
        "reason": "highest_score",
        "capability": "refund",
        "agent_id": chosen.agent_id if chosen else None,
        "similarity": 0.8,
        "score": chosen.score if chosen else None,
        "scope_score": 0.4,
        "scope_floor": 0.2,
        "left_out": {},
        "weights": Weights(),
        "encoder_id": "e",
        "registry_version": 1,
        "calibration": "self",
    }
    return Decision(outcome=outcome, candidates=candidates, **(known | given))


BUSY_BUT_GOOD = candidate("good", success=1.0, headroom=0.2, score=0.74)
IDLE = candidate("idle", "refund", Rejection.OUTRANKED, success=0.7, headroom=0.6, score=0.73)


def stored(*decisions: Decision) -> list[StoredDecision]:
    """They as they come from the database."""
    return [
        StoredDecision(request_id=RequestId(f"r{at}"), position=0, recorded_ms=at, decision=one)
        for at, one in enumerate(decisions)
    ]


def entry(made: Decision, **given: Any) -> Entry:
    """One as it is exported, with what became of it."""
    (one,) = stored(made)
    known = {"language": "en", "environment": "production", "status": "completed", "verdict": None}
    return Entry(stored=one, **known | {"right_capability": None} | given)
