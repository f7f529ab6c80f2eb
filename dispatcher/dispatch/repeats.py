"""Dead letters for operators: what is dead and why, and doing a task again under its old key."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from dispatcher.dispatch.accept import Arrival, Repetition, first_step, new_state
from dispatcher.dispatch.assign import Assigner, Assignment
from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.dead_letter import CODES, Cause, may_have_run
from dispatcher.dispatch.ledger import DeadEntry, DeadQuery, KeyedRequest, Offer
from dispatcher.dispatch.planning import Planner
from dispatcher.dispatch.request import Attempt, ChatMessage, Request, RequestState, Task
from dispatcher.dispatch.selection import Selection
from dispatcher.errors import RequestError
from dispatcher.identifiers import AgentId, RequestId, idempotency_key, new_id
from dispatcher.intents.plan import Intent
from dispatcher.routing.decision import Rejection


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
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

    async def retry(self, dead_id: str, to: AgentId | None = None) -> RequestId:
        """Have a dead task done again: a new request of its caller, under the old idempotency key (D5).

        What it had done after all is told again by its agent. With `to`, that agent gets it. Raises
        RequestError, with nothing changed: `not_found`, `not_retryable` for a frame,
        `already_retried`, `may_have_run`, `caller_not_granted`, `agent_unavailable`.
        """
        letter = await self.show(dead_id)
        entry, state = letter.entry, letter.state
        if state is None or entry.capability is None:
            raise RequestError("Nobody knows what this frame belongs to.", code="not_retryable")
        if entry.retried_as is not None:
            raise _retried(entry.retried_as)
        task = next(task for task in state.tasks if task.task_id == entry.dead_id)
        return await self._again(state, task, to)

    async def _again(self, state: RequestState, task: Task, to: AgentId | None) -> RequestId:
        message = _message(state.request, state.intents[task.position], task)
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
        assignment = self._assign(arrival, task, state.attempts_of(task.task_id), to)
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
            raise _retried(outcome.request_id)
        return request_id

    def _assign(
        self, arrival: Arrival, task: Task, attempts: Sequence[Attempt], to: AgentId | None
    ) -> Assignment:
        """Who gets the dead task, decided before anything is stored; nobody starts it a second time (I2)."""
        may_be_done = may_have_run(task, attempts)
        stays = may_be_done and not task.idempotent
        if stays and to not in {None, task.agent_id}:
            raise _must_stay(task)
        wanted = task.agent_id if stays else to
        (intent,) = arrival.plan.intents
        state = new_state(arrival, 0, self.assigner)
        asked = (state.request, intent, state.tasks[0], frozenset[AgentId]())
        choose = self.selection.choose if wanted is None else partial(self.selection.choose_only, wanted)
        assignment = choose(*asked)
        found = _found(assignment)
        if may_be_done and not assignment.idempotent and found != task.agent_id:
            raise _must_stay(task)
        return assignment


def _found(assignment: Assignment) -> AgentId:
    decision = assignment.decision
    if decision.reason == Rejection.NOT_GRANTED:
        raise RequestError("Its caller may not use the capability any more.", code="caller_not_granted")
    if decision.agent_id is None:
        raise RequestError(f"Nobody gets it now: {decision.reason}.", code="agent_unavailable")
    return decision.agent_id


def _must_stay(task: Task) -> RequestError:
    return RequestError(
        f"It may have run at {task.agent_id} and must not run twice; only that agent can tell.",
        code="may_have_run",
    )


def _retried(request_id: RequestId) -> RequestError:
    return RequestError(f"It was retried as request {request_id}.", code="already_retried")


def _message(request: Request, intent: Intent, task: Task) -> ChatMessage:
    """The task as a message of its own, with what it had been given.

    Its key has a space, which no caller's can have: of two operators at once the second one is told.
    """
    return ChatMessage(
        message=intent.text,
        environment=request.environment,
        user_id=request.user_id,
        language=request.language,
        context={**request.context, **task.inputs},
        capability=task.capability,
        idempotency_key=f"retry {task.task_id}",
    )
