"""Parts that a person does: what is kept of one, what people are sent, what its caller sees (pure)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import orjson

from dispatcher.dispatch.lifecycle.request import DecisionRecord, RequestState, TaskStatus
from dispatcher.identifiers import CallerId, RequestId, TaskId
from dispatcher.protocol.handoff import HandoffFrame, NearCapability
from dispatcher.records import Struct
from dispatcher.routing.decision import Outcome

NEAR = 5
"""Capabilities that a person is told of, the nearest first."""


class Handoff(Struct, frozen=True, kw_only=True):
    """A part with a person. Times in milliseconds since the epoch by the database's clock, None: not yet.

    `described` is what its caller asked for in free words, None where that is not more than `text`.
    `published_ms` is when the broker confirmed its frame; None for ever where there is no broker.
    `publish_error` says why its frame can't be published at all: it is in the list alone.
    """

    task_id: TaskId
    request_id: RequestId
    caller: CallerId
    text: str
    language: str
    environment: str
    handed_ms: int
    described: str | None = None
    published_ms: int | None = None
    publish_error: str | None = None
    answer: str | None = None
    answered_by: str | None = None
    answered_ms: int | None = None

    @property
    def state(self) -> str:
        """`open` until somebody has answered, then `answered`."""
        return "open" if self.answered_ms is None else "answered"


NO_HANDOFFS: Mapping[TaskId, Handoff] = MappingProxyType({})


def count_handed_over(state: RequestState) -> int:
    """How many parts of the request are with people."""
    return sum(task.status is TaskStatus.HANDED_OFF for task in state.tasks)


def handoff_view(handoff: Handoff | None) -> Mapping[str, object]:
    """What the caller sees; None stands for one that nobody answered."""
    if handoff is None or handoff.answered_ms is None:
        return {"state": "open", "answer": None, "answered_ms": None}
    return {"state": handoff.state, "answer": handoff.answer, "answered_ms": handoff.answered_ms}


def handoff_frame(state: RequestState, handoff: Handoff, decisions: Sequence[DecisionRecord]) -> HandoffFrame:
    """The frame for people; `decisions` are all of the request, none where they were pruned.

    Raises ValueError, LookupError, TypeError or AttributeError where the part's decision has another form
    than ours have, or no frame can hold what there is.
    """
    task = {task.task_id: task for task in state.tasks}[handoff.task_id]
    request, intent = state.request, state.intents[task.position]
    first = next((one.document for one in decisions if one.position == task.position), "{}")
    decided = orjson.loads(first)
    return HandoffFrame(
        request_id=request.request_id,
        task_id=task.task_id,
        caller=request.caller,
        text=intent.text,
        described=handoff.described,
        message=request.message,
        language=request.language,
        environment=request.environment,
        session_id=request.session_id,
        user_id=request.user_id,
        context=dict(request.context),
        entities=[dict(entity.to_json()) for entity in intent.entities],
        reason=decided.get("reason", Outcome.HANDED_OFF.value),
        near=_near(decided.get("candidates", ())),
    )


def _near(candidates: Sequence[Mapping[str, Any]]) -> list[NearCapability]:
    best: dict[str, float] = {}
    for one in candidates:
        best[one["capability"]] = max(one["similarity"], best.get(one["capability"], 0.0))
    ordered = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    return [NearCapability(capability=name, similarity=value) for name, value in ordered[:NEAR]]
