"""Dead letters for operators: what is dead and why, and doing a task again under its old key."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.lifecycle.accept import Arrival, Repetition, first_step, new_state
from dispatcher.dispatch.lifecycle.assign import Assigner, Assignment
from dispatcher.dispatch.lifecycle.dead_letter import CODES, Cause, may_have_run, must_stay
from dispatcher.dispatch.lifecycle.ledger import DeadEntry, DeadQuery, KeyedRequest, Offer
from dispatcher.dispatch.lifecycle.request import ChatMessage, Request, RequestState, Task
from dispatcher.dispatch.planning import Planner
from dispatcher.dispatch.selection import Selection
from dispatcher.errors import RequestError
from dispatcher.identifiers import AgentId, RequestId, idempotency_key, new_id
from dispatcher.intents.plan import Intent
from dispatcher.protocol.topology import DEAD_LETTER_TTL_MS
from dispatcher.records import Struct, replace
from dispatcher.routing.decision import Rejection

INBOXES_REMEMBER_MS = DEAD_LETTER_TTL_MS
"""How long after a task ended its agent surely knows how; a day less than inboxes keep it."""


class DeadLetter(Struct, frozen=True, kw_only=True):
    """A dead letter with the request it belongs to; None for a frame that belongs to none."""

    entry: DeadEntry
    state: RequestState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """One per replica."""

    books: Bookkeeper
    planner: Planner
    selection: Selection
    assigner: Assigner

    async def list(self, cause: Cause | None, wanted: DeadQuery) -> Sequence[DeadEntry]:
        """The newest dead letters, of one cause or of all."""
        if cause is None:
            return await self.books.ledger.dead(wanted)
        if cause is Cause.AGENT_ERROR:
            every = frozenset[str]().union(*CODES.values())
            return await self.books.ledger.dead(replace(wanted, codes=every, excluded=True))
        return await self.books.ledger.dead(replace(wanted, codes=CODES[cause]))

    async def show(self, dead_id: str) -> DeadLetter:
        """One dead letter; raises RequestError (`not_found`)."""
        found = await self.books.ledger.dead(DeadQuery(dead_id=dead_id, limit=1))
        if not found:
            raise RequestError("There is no dead letter of this id.", code="not_found")
        (entry,) = found
        state = await self.books.ledger.read(entry.request_id) if entry.request_id else None
        return DeadLetter(entry=entry, state=state)

    async def retry(self, dead_id: str, to: AgentId | None = None, key: str | None = None) -> RequestId:
        """Have a dead task done again: a new request of its caller, under the old idempotency key (D5).

        What it had done after all is told again by its agent. With `to`, that agent gets it. `key` is the
        operator's own: called again with the same arguments, the request it made is returned. Raises
        RequestError, with nothing changed: `not_found`, `not_retryable` for a frame,
        `already_retried`, `may_have_run`, `caller_not_granted`, `agent_unavailable`.
        """
        digest = _digest(key, to)
        letter = await self.show(dead_id)
        entry, state = letter.entry, letter.state
        if state is None or entry.capability is None:
            raise RequestError("Nobody knows what this frame belongs to.", code="not_retryable")
        if entry.retried_as is not None:
            known = await self.books.ledger.find_by_key(state.request.caller, _key_of(entry.dead_id))
            return _same_retry(known, digest, entry.retried_as)
        task = next(task for task in state.tasks if task.task_id == entry.dead_id)
        if must_stay(task, state.attempts_of(task.task_id)):
            if to not in {None, task.agent_id}:
                raise _may_have_run(f"It may have run at {task.agent_id}; only that agent can tell.")
            await self._check_age(entry, task)
            to = task.agent_id
        return await self._again(state, task, to, digest)

    async def _check_age(self, entry: DeadEntry, task: Task) -> None:
        """Raise where the agent may have forgotten what it did; counts from the first time."""
        if task.repeat:
            # The first task's id and its key are made alike; a key that a caller chose leads nowhere.
            first_id = (task.idempotency_key or "").replace(":", ".")
            entries = await self.books.ledger.dead(DeadQuery(dead_id=first_id, limit=1))
        else:
            entries = (entry,)
        if not entries or entries[0].age_ms >= INBOXES_REMEMBER_MS:
            raise _may_have_run("It may have run, and its agent may have forgotten it.")

    async def _again(self, state: RequestState, task: Task, to: AgentId | None, digest: str) -> RequestId:
        message = _message(state.request, state.intents[task.position], task, digest)
        planned = await self.planner.plan(message)
        request_id = RequestId(new_id())
        key = task.idempotency_key or idempotency_key(task.request_id, task.position)
        arrival = Arrival(
            request_id=request_id,
            caller=state.request.caller,
            message=message,
            plan=planned.plan,
            repeats=Repetition(idempotency_key=key, number=task.repeat + 1),
        )
        may_be_done = may_have_run(task, state.attempts_of(task.task_id))
        assignment = self._assign(arrival, to, task.agent_id if may_be_done else None)
        if may_be_done and not assignment.idempotent and assignment.decision.agent_id != task.agent_id:
            raise _may_have_run("It may have run elsewhere, and this agent must not run it twice.")
        assigner = replace(self.assigner, choose=lambda *_: assignment)
        outcome = await self.books.accept(
            Offer(
                request_id=request_id,
                caller=arrival.caller,
                idempotency_key=message.idempotency_key,
                body_digest=message.body_digest,
                build=lambda now_ms: first_step(arrival, now_ms, assigner),
            )
        )
        if isinstance(outcome, KeyedRequest):
            return _same_retry(outcome, digest, outcome.request_id)
        return request_id

    def _assign(self, arrival: Arrival, to: AgentId | None, knows: AgentId | None) -> Assignment:
        """Who gets it, decided before anything is stored: if nobody is named, best who `knows` of it."""
        (intent,) = arrival.plan.intents
        state = new_state(arrival, 0, self.assigner)
        asked = (state.request, intent, state.tasks[0], frozenset[AgentId]())
        one = to or knows
        assignment = self.selection.choose_only(one, *asked) if one else self.selection.choose(*asked)
        if to is None and assignment.decision.agent_id is None:
            assignment = self.selection.choose(*asked)
        decision = assignment.decision
        if decision.reason == Rejection.NOT_GRANTED:
            raise RequestError("Its caller may not use the capability any more.", code="caller_not_granted")
        if decision.agent_id is None:
            raise RequestError(f"Nobody gets it now: {decision.reason}.", code="agent_unavailable")
        return assignment


def _may_have_run(reason: str) -> RequestError:
    return RequestError(reason, code="may_have_run")


def _same_retry(known: KeyedRequest | None, digest: str, newest: RequestId) -> RequestId:
    """The request that this very retry made before, its answer having got lost; raises for any other one."""
    if known is not None and digest and known.body_digest == digest:
        return known.request_id
    raise RequestError(f"It was retried as request {newest}.", code="already_retried")


def _digest(key: str | None, to: AgentId | None) -> str:
    """What tells this retry from all others; empty where it has no key."""
    return "" if key is None else hashlib.sha256(f"{key}\n{to or ''}".encode()).hexdigest()


def _key_of(dead_id: str) -> str:
    """The key of the request that repeats the task.

    It has a space, which no caller's can have: of two operators at once the second one is told.
    """
    return f"retry {dead_id}"


def _message(request: Request, intent: Intent, task: Task, digest: str) -> ChatMessage:
    """The task as a message of its own, with what it had been given."""
    return ChatMessage(
        message=intent.text,
        environment=request.environment,
        user_id=request.user_id,
        language=request.language,
        context={**request.context, **task.inputs},
        capability=task.capability,
        idempotency_key=_key_of(task.task_id),
        body_digest=digest,
    )
