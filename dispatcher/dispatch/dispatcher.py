"""The door to dispatch: submit a message, wait for its end, read it back, or have it explained."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from dispatcher.dispatch.admission import Admission
from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.lifecycle.accept import Arrival, first_step, new_state
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.cancel import cancel
from dispatcher.dispatch.lifecycle.handoff import count_handed_over
from dispatcher.dispatch.lifecycle.ledger import KeyedRequest, Offer
from dispatcher.dispatch.lifecycle.match import MatchRules, matched
from dispatcher.dispatch.lifecycle.request import ChatMessage, DecisionRecord, RequestState
from dispatcher.dispatch.lifecycle.session import Session
from dispatcher.dispatch.planning import Planned, Planner
from dispatcher.dispatch.seen_keys import SeenKeys
from dispatcher.dispatch.selection import Selection
from dispatcher.errors import RequestError
from dispatcher.identifiers import RequestId, new_id
from dispatcher.intents.plan import Plan
from dispatcher.records import Struct, replace
from dispatcher.registry.access import Identity, Role
from dispatcher.routing.decision import Decision


class Submitted(Struct, frozen=True, kw_only=True):
    """An accepted request; `replayed` where its idempotency key had been used for it before."""

    request_id: RequestId
    replayed: bool


class Explanation(Struct, frozen=True, kw_only=True):
    """What would happen to a message now; `decisions` by intent position. Nothing was sent or stored."""

    plan: Plan
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatcher:
    """One per replica; all methods may be called concurrently."""

    books: Bookkeeper
    planner: Planner
    selection: Selection
    assigner: Assigner
    admission: Admission
    seen: SeenKeys = field(default_factory=SeenKeys)
    matching: MatchRules = field(default_factory=MatchRules)

    async def submit(self, message: ChatMessage, identity: Identity, *, waits: bool = True) -> Submitted:
        """Plan, route and accept a message; it is durable when this returns.

        `waits` where `wait` comes next: a state that ends before that is kept for it.

        Raises RequestError (`idempotency_key_reused`, `unknown_capability`,
        `capability_not_granted`, `semantic_match_off`) and OverloadedError; nothing was accepted then.
        """
        known = await self._find_replay(message, identity)
        if known is not None:
            return known
        message = self._named(message, identity)
        self.admission.check_total()
        message, session = await self._in_session(message, identity)
        planned = await self.planner.plan(message, session)
        arrival = Arrival(
            request_id=RequestId(new_id()),
            caller=identity.caller_id,
            message=message,
            plan=planned.plan,
            rankings=planned.rankings,
            session=session,
            still_asked=planned.still_asked,
        )
        with self._admitted(planned, identity, message.environment):
            if waits:
                self.books.waiters.expect(arrival.request_id)
            outcome = await self.books.accept(self._offer(arrival, planned))
            if isinstance(outcome, KeyedRequest):
                return _replay(outcome, message)
            self.admission.handoffs.add(count_handed_over(outcome.after))
        return Submitted(request_id=arrival.request_id, replayed=False)

    async def wait(self, request_id: RequestId, seconds: float) -> RequestState:
        """The request once it has ended, or as it stands after `seconds`."""
        return await self.books.waiters.wait(request_id, seconds)

    async def read(self, request_id: RequestId, identity: Identity) -> RequestState | None:
        """A request of this caller; None for an unknown one and for other callers'. An admin reads all."""
        state = await self.books.ledger.read(request_id)
        if state is None or not _may_read(state, identity):
            return None
        return state

    async def cancel(self, request_id: RequestId, identity: Identity) -> RequestState | None:
        """End a request that this caller wants no more; the state after it, None as with `read`.

        A request that has ended stays as it is. Handlers that run are told to stop, best effort.
        """
        if await self.read(request_id, identity) is None:
            return None
        change = await self.books.update(request_id, partial(cancel, assigner=self.assigner))
        return None if change is None else change.after

    async def decisions(self, request_id: RequestId, identity: Identity) -> tuple[DecisionRecord, ...] | None:
        """The stored decisions of a request that the identity may read, else None."""
        if await self.read(request_id, identity) is None:
            return None
        return await self.books.ledger.read_decisions(request_id)

    async def explain(self, message: ChatMessage, identity: Identity) -> Explanation:
        """Plan and route without sending or storing anything; raises like `submit`."""
        message = self._named(message, identity)
        message, session = await self._in_session(message, identity)
        planned = await self.planner.plan(message, session)
        return Explanation(plan=planned.plan, decisions=self._decide(message, identity, planned))

    async def _in_session(
        self, message: ChatMessage, identity: Identity
    ) -> tuple[ChatMessage, Session | None]:
        """The message with what its session remembers of its user; what the caller sends himself wins."""
        if message.session_id is None:
            return message, None
        stored = await self.books.ledger.read_session(identity.caller_id, message.session_id)
        session = stored.found_by(message.user_id)
        return replace(message, context={**session.values(), **message.context}), session

    def _decide(self, message: ChatMessage, identity: Identity, planned: Planned) -> tuple[Decision, ...]:
        arrival = Arrival(
            request_id=RequestId(new_id()),
            caller=identity.caller_id,
            message=message,
            plan=planned.plan,
        )
        state = new_state(arrival, 0, self.assigner)
        return tuple(
            self.selection.choose(state.request, intent, task, frozenset(), planned=planned).decision
            for intent, task in zip(state.intents, state.tasks, strict=True)
        )

    async def _find_replay(self, message: ChatMessage, identity: Identity) -> Submitted | None:
        """The request of a key that may be in use; the ledger tells of one that is new to this replica.

        A capability that the caller names is checked before that, and must not hide a replay.
        """
        key = message.idempotency_key
        is_named = message.capability or message.wanted
        if key is None or not (self.seen.add(identity.caller_id, key) or is_named):
            return None
        known = await self.books.ledger.find_by_key(identity.caller_id, key)
        return None if known is None else _replay(known, message)

    def _named(self, message: ChatMessage, identity: Identity) -> ChatMessage:
        """The message with the name of the capability that the caller asks for, if it can be told by now."""
        return matched(message, self.matching, self.planner.contracts(), identity.allows)

    def _offer(self, arrival: Arrival, planned: Planned) -> Offer:
        assigner = replace(self.assigner, choose=partial(self.selection.choose, planned=planned))
        return Offer(
            request_id=arrival.request_id,
            caller=arrival.caller,
            idempotency_key=arrival.message.idempotency_key,
            body_digest=arrival.message.body_digest,
            build=lambda now_ms: first_step(arrival, now_ms, assigner),
        )

    def _admitted(
        self, planned: Planned, identity: Identity, environment: str
    ) -> AbstractContextManager[None]:
        """While it is accepted; raises OverloadedError where too much waits for those who would do it."""
        asked = self.selection.asked_for(identity.caller_id, planned)
        self.admission.check(asked, environment)
        is_handed_over = self.selection.hands_over(identity.caller_id, planned)
        return self.admission.reserving(asked.count(None) if is_handed_over else 0)


def _replay(known: KeyedRequest, message: ChatMessage) -> Submitted:
    if known.body_digest != message.body_digest:
        raise RequestError("this idempotency key was used with another body", code="idempotency_key_reused")
    return Submitted(request_id=known.request_id, replayed=True)


def _may_read(state: RequestState, identity: Identity) -> bool:
    return identity.role is Role.ADMIN or state.request.caller == identity.caller_id
