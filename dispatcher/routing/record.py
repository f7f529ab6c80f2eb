"""Decisions and rankings as JSON documents: what is stored, and read back."""

from collections.abc import Mapping
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

Stored = CapabilityScore | Decision | Ranking | ShadowDecision | ShadowScope | Weights


def decision_document(decision: Decision) -> str:
    """The decision as one JSON object; equal decisions give equal text."""
    return orjson.dumps(decision, default=_members).decode()


def read_decision(document: str) -> Decision:
    """The decision that `decision_document` wrote; members of later versions are ignored."""
    fields = _known(Decision, orjson.loads(document))
    fields["outcome"] = Outcome(fields["outcome"])
    fields["weights"] = Weights(**_known(Weights, fields["weights"]))
    fields["candidates"] = tuple(_candidate(row) for row in fields["candidates"])
    fields["options"] = tuple(Option(*map(row.get, Option._fields)) for row in fields.get("options", ()))
    fields["advice"] = tuple(fields.get("advice", ()))
    fields["shadow"] = _shadow_decision(fields.get("shadow"))
    return Decision(**fields)


def ranking_document(ranking: Ranking) -> str:
    """The ranking as one JSON object, for a decision that is made from it later."""
    return orjson.dumps(ranking, default=dict).decode()


def read_ranking(document: str) -> Ranking:
    """The ranking that `ranking_document` wrote; members of later versions are ignored."""
    fields = _known(Ranking, orjson.loads(document))
    rows = [_known(CapabilityScore, row) for row in fields["capabilities"]]
    fields["advice"] = tuple(fields.get("advice", ()))
    shadow = fields.get("shadow")
    fields["shadow"] = None if shadow is None else ShadowScope(**_known(ShadowScope, shadow))
    return Ranking(**fields | {"capabilities": tuple(CapabilityScore(**row) for row in rows)})


def _members(value: Candidate | Option | Mapping[str, Any]) -> dict[str, Any]:
    """What orjson does not know by itself: a named tuple, or a mapping that is no dictionary."""
    return value._asdict() if isinstance(value, Candidate | Option) else dict(value)


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
