"""Between rows and the ledger's dataclasses; one function each way for every table.

A written row is a dictionary from column names to plain values; it carries its request's caller.
"""

from dataclasses import asdict
from typing import Any

from sqlalchemy import RowMapping

from dispatcher.dispatch.request import (
    Attempt,
    AttemptStatus,
    DecisionRecord,
    PartialRecord,
    Request,
    RequestStatus,
    ResultRecord,
    Task,
    TaskStatus,
)
from dispatcher.identifiers import CallerId, new_id
from dispatcher.intents.plan import Entity, EntityKind, Intent, Link, Source

_REQUEST_FIELDS = tuple(Request.__slots__)
_TASK_FIELDS = tuple(Task.__slots__)
_ATTEMPT_FIELDS = tuple(Attempt.__slots__)
_PARTIAL_FIELDS = tuple(PartialRecord.__slots__)


def request_row(request: Request) -> dict[str, Any]:
    """The row of `requests`."""
    return {name: getattr(request, name) for name in _REQUEST_FIELDS}


def to_request(row: RowMapping) -> Request:
    """The request of a row of `requests`."""
    return Request(**_chosen(row, _REQUEST_FIELDS) | {"status": RequestStatus(row["status"])})


def task_row(task: Task, caller: CallerId) -> dict[str, Any]:
    """The row of `tasks`."""
    return {name: getattr(task, name) for name in _TASK_FIELDS} | {"caller": caller}


def to_task(row: RowMapping) -> Task:
    """The task of a row of `tasks`."""
    return Task(**_chosen(row, _TASK_FIELDS) | {"status": TaskStatus(row["status"])})


def attempt_row(attempt: Attempt, caller: CallerId) -> dict[str, Any]:
    """The row of `attempts`."""
    return {name: getattr(attempt, name) for name in _ATTEMPT_FIELDS} | {"caller": caller}


def to_attempt(row: RowMapping) -> Attempt:
    """The attempt of a row of `attempts`."""
    return Attempt(**_chosen(row, _ATTEMPT_FIELDS) | {"status": AttemptStatus(row["status"])})


def intent_row(intent: Intent, request: Request) -> dict[str, Any]:
    """The row of `intents`."""
    return {
        "request_id": request.request_id,
        "caller": request.caller,
        "position": intent.position,
        "text": intent.text,
        "capability": intent.capability,
        "confidence": intent.confidence,
        "entities": [entity.to_json() for entity in intent.entities],
        "inputs": intent.inputs,
        "links": [asdict(link) for link in intent.links],
        "missing": list(intent.missing),
        "labels": list(intent.labels),
    }


def to_intent(row: RowMapping) -> Intent:
    """The intent of a row of `intents`."""
    return Intent(
        position=row["position"],
        text=row["text"],
        capability=row["capability"],
        confidence=row["confidence"],
        entities=tuple(Entity(**entity | {"kind": EntityKind(entity["kind"])}) for entity in row["entities"]),
        inputs=row["inputs"],
        links=tuple(
            Link(**link | {"sources": tuple(Source(**source) for source in link["sources"])})
            for link in row["links"]
        ),
        missing=tuple(row["missing"]),
        labels=tuple(row["labels"]),
    )


def result_row(result: ResultRecord, caller: CallerId, now_ms: int) -> dict[str, Any]:
    """The row of `results`; the id's only duty is to keep the order of arrival."""
    return {
        "request_id": result.request_id,
        "result_id": new_id(),
        "caller": caller,
        "task_id": result.task_id,
        "attempt": result.attempt,
        "instance_id": result.instance_id,
        "kind": result.kind,
        "document": result.document,
        "recorded_ms": now_ms,
    }


def decision_row(decision: DecisionRecord, caller: CallerId, now_ms: int) -> dict[str, Any]:
    """The row of `decisions`."""
    return {
        "request_id": decision.request_id,
        "position": decision.position,
        "number": decision.number,
        "caller": caller,
        "document": decision.document,
        "recorded_ms": now_ms,
    }


def partial_row(partial: PartialRecord, caller: CallerId, now_ms: int) -> dict[str, Any]:
    """The row of `partials`."""
    return {name: getattr(partial, name) for name in _PARTIAL_FIELDS} | {
        "caller": caller,
        "recorded_ms": now_ms,
    }


def to_partial(row: RowMapping) -> PartialRecord:
    """The piece of a result of a row of `partials`."""
    return PartialRecord(**_chosen(row, _PARTIAL_FIELDS))


def to_decision(row: RowMapping) -> DecisionRecord:
    """The decision of a row of `decisions`."""
    return DecisionRecord(
        request_id=row["request_id"], position=row["position"], number=row["number"], document=row["document"]
    )


def _chosen(row: RowMapping, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in names}
