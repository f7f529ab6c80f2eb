"""The first state of a request (pure)."""

from dispatcher.dispatch.lifecycle.advance import advance
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import (
    ChatMessage,
    Request,
    RequestState,
    RequestStatus,
    Task,
    TaskStatus,
)
from dispatcher.dispatch.lifecycle.session import Question, Session, without
from dispatcher.dispatch.lifecycle.transition import Draft
from dispatcher.identifiers import CallerId, RequestId, TaskId, callers_key
from dispatcher.intents.follow_up import topic_of
from dispatcher.intents.plan import Intent, Plan
from dispatcher.records import Struct
from dispatcher.routing.ranking import Ranking
from dispatcher.routing.record import ranking_document


class Repetition(Struct, frozen=True, kw_only=True):
    """An operator has a task done again, the `number`th time, under its old key."""

    idempotency_key: str
    number: int


class Arrival(Struct, frozen=True, kw_only=True):
    """A planned message that is about to be accepted."""

    request_id: RequestId
    caller: CallerId
    message: ChatMessage
    plan: Plan
    rankings: tuple[Ranking, ...] = ()
    """By intent position; none where the caller named the capability."""
    repeats: Repetition | None = None
    """The task that the only intent repeats, if it does."""
    session: Session | None = None
    """The message's session as it was when the message was planned.

    The questions it had then are closed now but for `still_asked`, and it keeps the topic.
    """
    still_asked: tuple[Question, ...] = ()


def first_step(arrival: Arrival, now_ms: int, assigner: Assigner) -> Step:
    """Everything known before publishing, for one commit: request, tasks, decisions, first attempts."""
    draft = Draft(new_state(arrival, now_ms, assigner), now_ms)
    if arrival.session is not None:
        draft.close(without(arrival.session.questions, arrival.still_asked))
        draft.keep_topic(_topic(arrival.plan))
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


def _topic(plan: Plan) -> str | None:
    """Of an answer to a question this is the text that was asked about: the plan is of that one."""
    return topic_of([intent.text for intent in plan.intents if intent.capability is not None])


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
        session_version=arrival.session.version if arrival.session else None,
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
        idempotency_key=_key(arrival),
        repeat=arrival.repeats.number if arrival.repeats else 0,
    )


def _key(arrival: Arrival) -> str | None:
    """A key not made from the request's id: the only intent repeats a task, or its caller chose a key."""
    message = arrival.message
    if arrival.repeats is not None:
        return arrival.repeats.idempotency_key
    if message.capability is None or message.idempotency_key is None:
        return None
    return callers_key(arrival.caller, message.capability, message.idempotency_key, message.message)
