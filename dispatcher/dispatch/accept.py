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
from dispatcher.routing.ranking import Ranking
from dispatcher.routing.record import ranking_document


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A planned message that is about to be accepted."""

    request_id: RequestId
    caller: CallerId
    message: ChatMessage
    plan: Plan
    rankings: tuple[Ranking, ...] = ()
    """By intent position; none where the caller named the capability."""


def first_step(arrival: Arrival, now_ms: int, assigner: Assigner) -> Step:
    """Everything known before publishing, for one commit: request, tasks, decisions, first attempts."""
    draft = Draft(new_state(arrival, now_ms, assigner), now_ms)
    advance(draft, assigner)
    return draft.step()


def new_state(arrival: Arrival, now_ms: int, assigner: Assigner) -> RequestState:
    """The request with all its tasks waiting, accepted at `now_ms` by the assigner's replica."""
    intents = arrival.plan.intents
    return RequestState(
        request=_request(arrival, now_ms, assigner),
        intents=intents,
        tasks=tuple(_task(arrival, intent) for intent in intents),
        attempts=(),
    )


def _request(arrival: Arrival, now_ms: int, assigner: Assigner) -> Request:
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


def _task(arrival: Arrival, intent: Intent) -> Task:
    ranking = arrival.rankings[intent.position] if arrival.rankings and intent.links else None
    return Task(
        task_id=TaskId(f"{arrival.request_id}.{intent.position}"),
        request_id=arrival.request_id,
        position=intent.position,
        capability=intent.capability,
        status=TaskStatus.WAITING,
        idempotent=False,
        timeout_ms=0,
        similarity=intent.confidence,
        ranking=ranking_document(ranking) if ranking else None,
    )
