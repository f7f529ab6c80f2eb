"""Decisions and rankings as JSON documents: what is stored, and read back."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson

from dispatcher.records import Struct, asdict
from dispatcher.routing.decision import (
    Candidate,
    Decision,
    Option,
    Outcome,
    Rejection,
    ShadowDecision,
    Weights,
)
from dispatcher.routing.ranking import CapabilityScore, Ranked, Ranking
from dispatcher.routing.shadow import ShadowScope


def decision_document(decision: Decision) -> str:
    """The decision as one JSON object; equal decisions give equal text."""
    document = asdict(decision)
    document["candidates"] = _rows(decision.candidates)
    document["own_candidates"] = _rows(decision.own_candidates)
    return orjson.dumps(document, default=_members).decode()


def read_decision(document: str) -> Decision:
    """The decision that `decision_document` wrote; members of later versions are ignored."""
    fields = _known(Decision.__struct_fields__, orjson.loads(document))
    fields["outcome"] = Outcome(fields["outcome"])
    fields["weights"] = Weights(**_known(Weights.__slots__, fields["weights"]))
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
    fields = _known(Ranking.__struct_fields__, orjson.loads(document))
    rows = [
        {name: value for name, value in row.items() if name in CapabilityScore._fields}
        for row in fields["capabilities"]
    ]
    fields["advice"] = tuple(fields.get("advice", ()))
    shadow = fields.get("shadow")
    fields["shadow"] = (
        None if shadow is None else ShadowScope(**_known(ShadowScope.__struct_fields__, shadow))
    )
    return Ranking(**fields | {"capabilities": tuple(CapabilityScore(**row) for row in rows)})


def _members(value: Struct | Ranked | CapabilityScore | Option | Mapping[str, Any]) -> object:
    """What orjson does not know by itself: records, named tuples, and what is no plain list or dictionary."""
    if isinstance(value, Struct):
        return asdict(value)
    if isinstance(value, Ranked):
        return value.all
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
    fields = _known(ShadowDecision.__struct_fields__, row)
    return ShadowDecision(**fields | {"outcome": Outcome(fields["outcome"])})


def _known(names: Collection[str], fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name in names}
