"""A caller's way past a dispatcher that is gone: to the agents it last knew, if they allow it (D10).

What may have been accepted must not be done twice (I2). So only a request that names its capability
goes this way, and only where no gateway surely has it, or where doing it again does no harm: then
it carries the key that the dispatcher's own task would have, and an agent that had that task
answers from its inbox.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dispatcher.clock import Clock
from dispatcher.errors import ConfigurationError, DispatcherError, OutcomeUnknownError, UnavailableError
from dispatcher.protocol.direct import TICKET_HEADER
from dispatcher.protocol.frames import ResultFrame, TaskFrame
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.sdk.direct_reply import Fate, answer_of, read_reply
from dispatcher.sdk.direct_task import Lost, Tries, task_of, wish_of
from dispatcher.sdk.known_routes import DirectWay, KnownAgent, KnownRoutes, Route, Wish
from dispatcher.sdk.request_answer import ChatOptions, RequestAnswer
from dispatcher.sdk.transport import EndpointTransport, HttpRequest, NotReachedError, Transport

_log = logging.getLogger(__name__)
_NOTHING_THERE = frozenset({"not_found", "forbidden", "unauthenticated"})
MOST_ATTEMPTS = 3
"""Of a task, whoever makes them (I7)."""
ANSWER_S = 1.0
"""Beyond a task's budget, for the agent's word that it is over."""
SHORTEST_S = 0.1
"""With less time left nobody is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectRules:
    """How a client goes on without its dispatcher. Times are seconds.

    It remembers the agents of the last `capabilities` it named, asks for them again every `refresh_s`
    while a gateway answers, and calls them for `keep_s` after it was last told of them: `attempts`
    of them at most for one message, each within the three limits of a call.
    """

    capabilities: int = 64
    refresh_s: float = 60.0
    keep_s: float = 3600.0
    attempts: int = 3
    connect_s: float = 3.0
    read_s: float = 15.0
    total_s: float = 30.0

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= MOST_ATTEMPTS:
            raise ConfigurationError(f"direct calls have 1 to {MOST_ATTEMPTS} attempts")


class DirectCalls:
    """Remembers routes, and calls agents. `ask` gets a route from a gateway, or raises what it says."""

    def __init__(
        self,
        rules: DirectRules,
        ask: Callable[[Wish], Awaitable[dict[str, Any]]],
        clock: Clock,
        *,
        agents: Transport | None = None,
    ) -> None:
        self._rules = rules
        self._ask = ask
        self._clock = clock
        self._agents = agents or EndpointTransport(
            connect_s=rules.connect_s, read_s=rules.read_s, max_bytes=MAX_FRAME_BYTES
        )
        self._known = KnownRoutes(rules.capabilities)
        self._wanted = asyncio.Event()

    def used(self, options: ChatOptions) -> None:
        """A gateway took a message with these options: its capability is worth remembering."""
        wish = wish_of(options)
        if wish is not None and self._known.wish(wish):
            self._wanted.set()

    async def fetch(self, wish: Wish) -> dict[str, Any]:
        """Ask a gateway, and remember its answer; where it denies the capability, forget what was known."""
        try:
            document = await self._ask(wish)
        except DispatcherError as error:
            if error.error_code in _NOTHING_THERE:
                self._known.drop(wish)
            raise
        self.learn(wish, document)
        return document

    def learn(self, wish: Wish, document: dict[str, Any]) -> None:
        """Remember what a gateway answered."""
        try:
            route = Route.model_validate(document)
        except ValidationError as error:
            _log.warning("route.unreadable", extra={"errors": error.error_count()})
            return
        self._known.wish(wish)
        self._known.put(wish, route, self._clock.monotonic())

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Calls work inside the block, and what is remembered is kept fresh."""
        async with self._agents, asyncio.TaskGroup() as group:
            refreshing = group.create_task(self._refresh_for_ever())
            try:
                yield
            finally:
                refreshing.cancel()

    async def _refresh_for_ever(self) -> None:
        while True:
            self._wanted.clear()
            for wish in self._known.older_than(self._rules.refresh_s, self._clock.monotonic()):
                if not await self._refresh(wish):
                    break
            try:
                async with asyncio.timeout(self._rules.refresh_s):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def _refresh(self, wish: Wish) -> bool:
        """Ask once more; False where no gateway answers, so that there is no use in asking for others."""
        try:
            await self.fetch(wish)
        except DispatcherError as error:
            _log.info("route.not_refreshed", extra={"reason": error.error_code})
            return not isinstance(error, UnavailableError)
        return True

    async def answer(self, lost: Lost) -> RequestAnswer | None:
        """An agent's answer; None where nobody may be asked, or everybody surely refused.

        Raises `OutcomeUnknownError` where an agent may have done it and did not say.
        """
        wish = wish_of(lost.options)
        now = self._clock.monotonic()
        route = None if wish is None else self._known.find(wish, self._rules.keep_s, now)
        if route is None:
            return None
        tries = Tries(until=now + lost.wait_s)
        for agent in route.candidates:
            if agent.direct is None or not (lost.surely or agent.idempotent):
                continue
            if tries.is_unsure and not agent.idempotent:
                continue
            found = await self._try(lost, route, agent, agent.direct, tries)
            if found is not None:
                return found
        if tries.failed is None and tries.is_unsure:
            raise OutcomeUnknownError("an agent was called directly and did not answer; it may have run")
        return tries.failed

    async def _try(
        self, lost: Lost, route: Route, agent: KnownAgent, way: DirectWay, tries: Tries
    ) -> RequestAnswer | None:
        """The answer that ends it; None where the next agent may be asked."""
        began = self._clock.monotonic()
        budget_s = min(agent.timeout_ms / 1000, self._rules.total_s, tries.until - began)
        if tries.count >= self._rules.attempts or budget_s < SHORTEST_S:
            return None
        tries.count += 1
        task = task_of(lost, route, agent, tries, round(budget_s * 1000))
        reply = await self._call(task, way, budget_s + ANSWER_S)
        facts = {"agent_id": agent.agent_id, "capability": task.capability, "task_id": task.task_id}
        said = reply.value if isinstance(reply, Fate) else reply.status.value
        _log.info("task.called_directly", extra={**facts, "attempt": task.attempt, "said": said})
        if isinstance(reply, Fate):
            tries.is_unsure |= reply is Fate.UNKNOWN
            return None
        answer = answer_of(task, reply, agent.score, round((self._clock.monotonic() - began) * 1000))
        if reply.can_retry and agent.idempotent and answer["status"] == "failed":
            tries.failed = answer
            return None
        return answer

    async def _call(self, task: TaskFrame, way: DirectWay, seconds: float) -> ResultFrame | Fate:
        request = HttpRequest(
            method="POST",
            path=way.endpoint,
            headers={
                "Content-Type": "application/json",
                "Idempotency-Key": task.idempotency_key,
                "X-Request-Id": task.request_id,
                TICKET_HEADER: way.ticket,
            },
            body=task.model_dump_json().encode(),
            seconds=seconds,
        )
        try:
            return read_reply(task, await self._agents.send(request))
        except NotReachedError:
            return Fate.NOT_RUN
        except UnavailableError:
            return Fate.UNKNOWN
