"""Decisions and rankings as JSON documents: what is stored, and read back."""

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

import orjson

from dispatcher.routing.decision import (
    Candidate,
    Decision,
    Option,
    Outcome,
    Rejection,
    ShadowDecision,
    Weights,
)
from dispatcher.routing.ranking import CapabilityScore, Ranking
from dispatcher.routing.shadow import ShadowScope

Stored = Decision | Ranking | ShadowDecision | ShadowScope | Weights

_NAMES = tuple(Decision.__dataclass_fields__)
_values = attrgetter(*_NAMES)


def decision_document(decision: Decision) -> str:
    """The decision as one JSON object; equal decisions give equal text."""
    document = dict(zip(_NAMES, _values(decision), strict=True))
    document["candidates"] = _rows(decision.candidates)
    document["own_candidates"] = _rows(decision.own_candidates)
    return orjson.dumps(document, default=_members).decode()


def read_decision(document: str) -> Decision:
    """The decision that `decision_document` wrote; members of later versions are ignored."""
    fields = _known(Decision, orjson.loads(document))
    fields["outcome"] = Outcome(fields["outcome"])
    fields["weights"] = Weights(**_known(Weights, fields["weights"]))
    fields["candidates"] = tuple(_candidate(row) for row in fields["candidates"])
    fields["own_candidates"] = tuple(_candidate(row) for row in fields.get("own_candidates", ()))
    fields["options"] = tuple(Option(*map(row.get, Option._fields)) for row in fields.get("options", ()))
    fields["advice"] = tuple(fields.get("advice", ()))
    fields["shadow"] = _shadow_decision(fields.get("shadow"))
    return Decision(**fields)


def ranking_document(ranking: Ranking) -> str:
    """The ranking as one JSON object, for a decision that is made from it later."""
    return orjson.dumps(ranking, default=_members).decode()


def read_ranking(document: str) -> Ranking:
    """The ranking that `ranking_document` wrote; members of later versions are ignored."""
    fields = _known(Ranking, orjson.loads(document))
    rows = [
        {name: value for name, value in row.items() if name in CapabilityScore._fields}
        for row in fields["capabilities"]
    ]
    fields["advice"] = tuple(fields.get("advice", ()))
    shadow = fields.get("shadow")
    fields["shadow"] = None if shadow is None else ShadowScope(**_known(ShadowScope, shadow))
    return Ranking(**fields | {"capabilities": tuple(CapabilityScore(**row) for row in rows)})


def _members(value: CapabilityScore | Option | Mapping[str, Any]) -> dict[str, Any]:
    """What orjson does not know by itself: a named tuple, or a mapping that is no dictionary."""
    return value._asdict() if isinstance(value, CapabilityScore | Option) else dict(value)


def _rows(candidates: Iterable[Candidate]) -> list[dict[str, Any]]:
    """Name by name: asked through `default` for each of them, orjson takes twice the time."""
    return [
        {
            "agent_id": agent_id,
            "capability": capability,
            "cosine": cosine,
            "similarity": similarity,
            "success": success,
            "headroom": headroom,
            "score": score,
            "rejection": rejection,
        }
        for agent_id, capability, cosine, similarity, success, headroom, score, rejection in candidates
    ]


def _candidate(row: dict[str, Any]) -> Candidate:
    fields = {name: row[name] for name in Candidate._fields}
    if fields["rejection"] is not None:
        fields["rejection"] = Rejection(fields["rejection"])
    return Candidate(**fields)


def _shadow_decision(row: dict[str, Any] | None) -> ShadowDecision | None:
    if row is None:
        return None
    fields = _known(ShadowDecision, row)
    return ShadowDecision(**fields | {"outcome": Outcome(fields["outcome"])})


def _known(kind: type[Stored], fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name in kind.__dataclass_fields__}
