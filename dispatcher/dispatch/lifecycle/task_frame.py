"""The frame of one attempt, built when it is published so that its budget is what remains."""

from collections.abc import Mapping
from typing import Any

from dispatcher.dispatch.lifecycle.ledger import Due
from dispatcher.dispatch.lifecycle.request import Attempt, RequestState
from dispatcher.identifiers import idempotency_key
from dispatcher.protocol.frames import TaskContext, TaskFrame, TaskPayload


def due_of(state: RequestState, attempt: Attempt, now_ms: int) -> Due:
    """An attempt of this state, claimed at `now_ms`, with what its frame is made of."""
    task = next(t for t in state.tasks if t.task_id == attempt.task_id)
    intent = state.intents[task.position]
    return Due(
        request=state.request,
        task=task,
        attempt=attempt,
        text=intent.text,
        entities=tuple(entity.to_json() for entity in intent.entities),
        now_ms=now_ms,
    )


def task_frame(due: Due, reply_to: str, queued_ms: int = 0) -> TaskFrame:
    """The frame to publish `queued_ms` after the attempt was claimed.

    `budget_ms` is the smaller of the attempt's time and what is left of the task's; 0 when that is over.
    A long task has all that is left, and the attempt's time to start. Nothing is validated: it all
    was when it came in, and the receiver does so again.
    """
    request, task, attempt = due.request, due.task, due.attempt
    remaining = (task.deadline_ms or due.now_ms) - due.now_ms - queued_ms
    start_within_ms = max(0, min(attempt.timeout_ms, remaining))
    budget_ms = start_within_ms if attempt.lease_ms is None else max(0, remaining)
    return TaskFrame.model_construct(
        request_id=request.request_id,
        task_id=task.task_id,
        attempt=attempt.number,
        idempotency_key=task.idempotency_key or idempotency_key(request.request_id, task.position),
        token=attempt.token,
        agent_id=attempt.agent_id,
        capability=str(task.capability),
        payload=TaskPayload.model_construct(
            text=due.text,
            input=_plain(task.inputs),
            entities=[_plain(entity) for entity in due.entities],
        ),
        context=TaskContext.model_construct(
            caller=request.caller,
            session_id=request.session_id,
            user_id=request.user_id,
            language=request.language,
            environment=request.environment,
            data=_plain(request.context),
        ),
        budget_ms=budget_ms,
        start_within_ms=start_within_ms,
        lease_ms=attempt.lease_ms,
        repeat=task.repeat,
        reply_to=reply_to,
    )


def _plain(values: Mapping[str, object]) -> dict[str, Any]:
    return dict(values)
