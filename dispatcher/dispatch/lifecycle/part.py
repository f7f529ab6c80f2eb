"""A part of the answer: one intent with what became of it, as callers see it (pure)."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from dispatcher.dispatch.lifecycle.answer import part_sentence
from dispatcher.dispatch.lifecycle.handoff import NO_HANDOFFS, Handoff, handoff_view
from dispatcher.dispatch.lifecycle.option import read_options
from dispatcher.dispatch.lifecycle.request import Attempt, RequestState, Task, TaskStatus
from dispatcher.identifiers import AgentId, Capability, TaskId
from dispatcher.records import asdict

_UNDECIDED = frozenset({TaskStatus.OUT_OF_SCOPE, TaskStatus.CLARIFY, TaskStatus.HANDED_OFF})
"""Parts that belong to no capability, whatever came nearest."""


class Part(TypedDict):
    """One intent's outcome.

    `result` is `{text, data}` of the agent or None; `error` is `{code, message}` with a sentence
    for a person: the agent's own where it asks for input, never what it said of a failure.
    `similarity` and `score` are in [0, 1]. `progress` is the last `{fraction, note}` of an attempt
    that is at work, None where its agent said nothing.
    `options` are what a part that is not clear may mean, numbered from 1; empty for any other.
    `handoff` is `{state, answer, answered_ms}` of a part that a person does, None for any other.
    `waited_ms` is the time until the task opened, `elapsed_ms` the time from then to its end.
    """

    intent: str
    capability: Capability | None
    agent_id: AgentId | None
    status: TaskStatus
    result: Mapping[str, object] | None
    error: Mapping[str, object] | None
    similarity: float
    score: float | None
    attempts: int
    waited_ms: int | None
    elapsed_ms: int | None
    retry_after_s: int | None
    progress: Mapping[str, object] | None
    options: Sequence[Mapping[str, object]]
    handoff: Mapping[str, object] | None


def parts(state: RequestState, handoffs: Mapping[TaskId, Handoff] = NO_HANDOFFS) -> tuple[Part, ...]:
    """The request's parts in the order asked; what is not among `handoffs` no person has answered."""
    return tuple(_part(state, task, handoffs) for task in state.tasks)


def shown_capability(task: Task) -> Capability | None:
    """The capability that the part belongs to, None for one that belongs to none."""
    return None if task.status in _UNDECIDED else task.capability


def _part(state: RequestState, task: Task, handoffs: Mapping[TaskId, Handoff]) -> Part:
    intent = state.intents[task.position]
    attempts = state.attempts_of(task.task_id)
    return Part(
        intent=intent.text,
        capability=shown_capability(task),
        agent_id=task.agent_id,
        status=task.status,
        result=_result(task),
        error=_error(state, task),
        similarity=task.similarity,
        score=task.score,
        attempts=len(attempts),
        waited_ms=_between(state.request.created_ms, task.opened_ms),
        elapsed_ms=_between(task.opened_ms, task.finished_ms),
        retry_after_s=task.retry_after_s,
        progress=_progress(attempts),
        options=_options(task) if task.status is TaskStatus.CLARIFY else (),
        handoff=handoff_view(handoffs.get(task.task_id)) if task.status is TaskStatus.HANDED_OFF else None,
    )


def _progress(attempts: Sequence[Attempt]) -> Mapping[str, object] | None:
    said = (attempt.progress for attempt in reversed(attempts) if attempt.status.is_open)
    return next(filter(None, said), None)


def _between(start_ms: int | None, end_ms: int | None) -> int | None:
    return None if start_ms is None or end_ms is None else end_ms - start_ms


def _result(task: Task) -> Mapping[str, object] | None:
    is_empty = task.result_text is None and task.result_data is None
    if is_empty or task.status is TaskStatus.CLARIFY:
        return None
    return {"text": task.result_text, "data": dict(task.result_data or {})}


def _options(task: Task) -> Sequence[Mapping[str, object]]:
    told = enumerate(read_options(task.result_data), start=1)
    return [{"number": number, **asdict(option)} for number, option in told]


def _error(state: RequestState, task: Task) -> Mapping[str, object] | None:
    if task.error_code is None:
        return None
    message = part_sentence(state.request.language, task, state.intents)
    return {"code": task.error_code, "message": message}
