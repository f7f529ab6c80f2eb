"""Between rows and the ledger's records; one function each way for every table.

A written row is a tuple of plain values, in the order of the table's `..._COLUMNS`: first the request's
id, somewhere the request's caller.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from sqlalchemy import RowMapping

from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    AttemptStatus,
    DecisionRecord,
    HandoffRecord,
    PartialRecord,
    Request,
    RequestStatus,
    ResultRecord,
    Task,
    TaskStatus,
)
from dispatcher.identifiers import CallerId, new_id
from dispatcher.intents.plan import Entity, EntityKind, Intent, Link, Source

Row = tuple[Any, ...]


def _request_first(names: Iterable[str]) -> tuple[str, ...]:
    return ("request_id", *(name for name in names if name != "request_id"))


_TASK_FIELDS = _request_first(Task.__struct_fields__)
_ATTEMPT_FIELDS = _request_first(Attempt.__struct_fields__)
_PARTIAL_FIELDS = _request_first(PartialRecord.__struct_fields__)

REQUEST_COLUMNS = _request_first(Request.__struct_fields__)
INTENT_COLUMNS = (
    *("request_id", "caller", "position", "text", "capability", "confidence"),
    *("entities", "inputs", "links", "missing", "labels"),
)
TASK_COLUMNS = (*_TASK_FIELDS, "caller")
ATTEMPT_COLUMNS = (*_ATTEMPT_FIELDS, "caller")
RESULT_COLUMNS = (
    *("request_id", "result_id", "caller", "task_id", "attempt"),
    *("instance_id", "kind", "document", "recorded_ms"),
)
DECISION_COLUMNS = ("request_id", "position", "number", "caller", "document", "recorded_ms")
PARTIAL_COLUMNS = (*_PARTIAL_FIELDS, "caller", "recorded_ms")
HANDOFF_COLUMNS = ("request_id", "task_id", "caller", "described")
"""What a new handoff has; it is published and answered later."""

_request_values = attrgetter(*REQUEST_COLUMNS)
_task_values = attrgetter(*_TASK_FIELDS)
_attempt_values = attrgetter(*_ATTEMPT_FIELDS)
_partial_values = attrgetter(*_PARTIAL_FIELDS)


def request_row(request: Request) -> Row:
    """The row of `requests`."""
    values: Row = _request_values(request)
    return values


def to_request(row: RowMapping) -> Request:
    """The request of a row of `requests`."""
    return Request(**_chosen(row, REQUEST_COLUMNS) | {"status": RequestStatus(row["status"])})


def task_row(task: Task, request: Request) -> Row:
    """The row of `tasks`."""
    return (*_task_values(task), request.caller)


def to_task(row: RowMapping) -> Task:
    """The task of a row of `tasks`."""
    return Task(**_chosen(row, _TASK_FIELDS) | {"status": TaskStatus(row["status"])})


def attempt_row(attempt: Attempt, request: Request) -> Row:
    """The row of `attempts`."""
    return (*_attempt_values(attempt), request.caller)


def to_attempt(row: RowMapping) -> Attempt:
    """The attempt of a row of `attempts`."""
    return Attempt(**_chosen(row, _ATTEMPT_FIELDS) | {"status": AttemptStatus(row["status"])})


def intent_row(intent: Intent, request: Request) -> Row:
    """The row of `intents`."""
    return (
        request.request_id,
        request.caller,
        intent.position,
        intent.text,
        intent.capability,
        intent.confidence,
        [entity.to_json() for entity in intent.entities],
        intent.inputs,
        [_link_document(link) for link in intent.links],
        intent.missing,
        intent.labels,
    )


def _link_document(link: Link) -> dict[str, object]:
    sources = [{"position": source.position, "output": source.output} for source in link.sources]
    return {"field": link.field, "sources": sources, "required": link.required}


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


def result_row(result: ResultRecord, caller: CallerId, now_ms: int) -> Row:
    """The row of `results`; the id's only duty is to keep the order of arrival."""
    return (
        result.request_id,
        new_id(),
        caller,
        result.task_id,
        result.attempt,
        result.instance_id,
        result.kind,
        result.document,
        now_ms,
    )


def decision_row(decision: DecisionRecord, caller: CallerId, now_ms: int) -> Row:
    """The row of `decisions`."""
    return (
        decision.request_id,
        decision.position,
        decision.number,
        caller,
        decision.document,
        now_ms,
    )


def partial_row(partial: PartialRecord, caller: CallerId, now_ms: int) -> Row:
    """The row of `partials`."""
    return (*_partial_values(partial), caller, now_ms)


def handoff_row(handoff: HandoffRecord, caller: CallerId) -> Row:
    """The row of `handoffs`."""
    return (handoff.request_id, handoff.task_id, caller, handoff.described)


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
