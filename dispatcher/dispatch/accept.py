"""The first state of a request (pure)."""

from dataclasses import dataclass

from dispatcher.dispatch.advance import advance
from dispatcher.dispatch.assign import Assigner
from dispatcher.dispatch.ledger import Step
from dispatcher.dispatch.request import (
    ChatMessage,
    Request,
    RequestState,
    RequestStatus,
    Task,
    TaskStatus,
)
from dispatcher.dispatch.transition import Draft
from dispatcher.identifiers import CallerId, RequestId, TaskId
from dispatcher.intents.plan import Intent, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A planned message that is about to be accepted."""

    request_id: RequestId
    caller: CallerId
    message: ChatMessage
    plan: Plan


def first_step(arrival: Arrival, now_ms: int, assigner: Assigner) -> Step:
    """Everything known before publishing, for one commit: request, tasks, decisions, first attempts."""
    intents = arrival.plan.intents
    state = RequestState(
        request=new_request(arrival, now_ms, assigner),
        intents=intents,
        tasks=tuple(_task(arrival.request_id, intent) for intent in intents),
        attempts=(),
    )
    draft = Draft(state, now_ms)
    advance(draft, assigner)
    return draft.step()


def new_request(arrival: Arrival, now_ms: int, assigner: Assigner) -> Request:
    """The open request of an arrival, accepted at `now_ms` by the assigner's replica."""
    message = arrival.message
    return Request(
        request_id=arrival.request_id,
        caller=arrival.caller,
        replica=assigner.replica,
        message=message.message,
        language=arrival.plan.language,
        environment=message.environment,
        session_id=message.session_id,
        user_id=message.user_id,
        context=message.context,
        idempotency_key=message.idempotency_key,
        body_digest=message.body_digest,
        status=RequestStatus.OPEN,
        answer=None,
        created_ms=now_ms,
        deadline_ms=now_ms + assigner.rules.request_timeout_ms,
    )


def _task(request_id: RequestId, intent: Intent) -> Task:
    return Task(
        task_id=TaskId(f"{request_id}.{intent.position}"),
        request_id=request_id,
        position=intent.position,
        capability=intent.capability,
        status=TaskStatus.WAITING,
        idempotent=False,
        timeout_ms=0,
        similarity=intent.confidence,
    )
