"""Decisions as JSON documents: what is stored, and read back for replay."""

from dataclasses import asdict
from typing import Any

import orjson

from dispatcher.routing.decision import Candidate, Decision, Outcome, Rejection, Weights


def decision_document(decision: Decision) -> str:
    """The decision as one JSON object; equal decisions give equal text."""
    return orjson.dumps(asdict(decision), option=orjson.OPT_SORT_KEYS).decode()


def read_decision(document: str) -> Decision:
    """The decision that `decision_document` wrote; members of later versions are ignored."""
    fields = _known(Decision, orjson.loads(document))
    fields["outcome"] = Outcome(fields["outcome"])
    fields["weights"] = Weights(**_known(Weights, fields["weights"]))
    fields["candidates"] = tuple(_candidate(row) for row in fields["candidates"])
    return Decision(**fields)


def _candidate(row: dict[str, Any]) -> Candidate:
    fields = _known(Candidate, row)
    if fields["rejection"] is not None:
        fields["rejection"] = Rejection(fields["rejection"])
    return Candidate(**fields)


def _known(kind: type[Candidate | Decision | Weights], fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name in kind.__dataclass_fields__}
