"""Changing the encoder under way: all is encoded anew beside what serves, then serves from one moment on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dispatcher.clock import Clock
from dispatcher.records import replace
from dispatcher.registry.agent import Agent
from dispatcher.routing.batcher import TextEncoder
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.decision import Decision, Outcome, Rejection
from dispatcher.routing.fitting import Fitted, Given
from dispatcher.routing.ranking import Ranking
from dispatcher.routing.router import Query, Router

logger = logging.getLogger(__name__)


class Routes(Protocol):
    """What ranks texts and decides."""

    async def rank(self, texts: Sequence[str]) -> tuple[Ranking, ...]:
        """One ranking for each text; see `router.Router`."""
        ...

    def decide(self, query: Query, ranking: Ranking | None = None) -> Decision:
        """Choose an agent now, from memory."""
        ...


@dataclass(slots=True, kw_only=True)
class _Serving:
    """A router of one encoder, and how many calls of it are under way."""

    router: Router
    encoder: TextEncoder
    calls: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def __enter__(self) -> Router:
        """The encoder is not given back before the block is left."""
        self.calls += 1
        return self.router

    def __exit__(self, *_: object) -> None:
        self.calls -= 1
        self.ended.set()

    async def unused(self) -> None:
        """Wait until no call is under way."""
        while self.calls:
            self.ended.clear()
            await self.ended.wait()


class ReindexingRouter:
    """A router whose encoder can be changed; belongs to one event loop.

    Every router within knows one encoder only, and each call is one router's: no ranking mixes two
    encoders, and a ranking is decided by the router that made it.
    """

    def __init__(self, make: Callable[[TextEncoder], Router], encoder: TextEncoder) -> None:
        self._make = make
        self._now = _Serving(router=make(encoder), encoder=encoder)
        self._before: _Serving | None = None
        self._wanted: tuple[Sequence[Agent], int] | None = None
        self._changing = asyncio.Lock()

    @property
    def encoder(self) -> TextEncoder:
        """The one in use."""
        return self._now.encoder

    @property
    def encoder_id(self) -> str:
        """See `router.Router`."""
        return self.encoder.encoder_id

    @property
    def fitted(self) -> Fitted | None:
        """See `router.Router`."""
        return self._now.router.fitted

    @property
    def given(self) -> Given | None:
        """See `router.Router`; of the encoder that serves."""
        return self._now.router.given

    def follow(self, given: Given) -> None:
        """See `router.Router`."""
        self._now.router.follow(given)

    @property
    def calibration(self) -> Calibration | None:
        """See `router.Router`."""
        return self._now.router.calibration

    async def sync(self, agents: Sequence[Agent], version: int) -> None:
        """Follow the registry to `version`, whichever encoder serves; raises as `router.Router.sync` does."""
        self._wanted = (agents, version)
        with self._now as router:
            await router.sync(agents, version)

    async def examine(self, agent: Agent) -> None:
        """See `router.Router`."""
        with self._now as router:
            await router.examine(agent)

    async def rank(self, texts: Sequence[str]) -> tuple[Ranking, ...]:
        """One ranking for each text, all of one encoder."""
        with self._now as router:
            return await router.rank(texts)

    async def trial(self, agent: Agent, texts: Sequence[str]) -> tuple[Ranking, ...]:
        """See `router.Router`."""
        with self._now as router:
            return await router.trial(agent, texts)

    def decide(self, query: Query, ranking: Ranking | None = None) -> Decision:
        """Choose an agent now; of a ranking by an encoder that is long gone only its verdict counts."""
        if ranking is None or ranking.encoder_id == self.encoder.encoder_id:
            return self._now.router.decide(query, ranking)
        if self._before is not None and ranking.encoder_id == self._before.encoder.encoder_id:
            return self._before.router.decide(query, ranking)
        return _decide_anew(self._now.router, query, ranking)

    async def change_encoder(
        self, new: TextEncoder, introduce: Callable[[Router], Awaitable[None]] | None = None
    ) -> TextEncoder:
        """Use another encoder once all declarations are encoded with it and the calibration is fitted.

        `introduce` tells the new router what is in force of its encoder, before it serves.
        Until then the old one serves; what the registry takes up meanwhile is taken up by both. Returns
        the old encoder when nothing uses it any more: the caller closes it. Raises OverloadedError or
        UnavailableError from the new one, and what `introduce` raises, and then nothing has changed. One
        change at a time; `let_go` is to be called after each.
        """
        async with self._changing:
            coming = _Serving(router=self._make(new), encoder=new)
            followed = None
            while self._wanted is not None and self._wanted[1] != followed:
                agents, followed = self._wanted
                await coming.router.sync(agents, followed)
                if introduce is not None:
                    await introduce(coming.router)
            # Nothing waits between the look at what is wanted and this: who asks next asks the new one.
            old, self._now = self._now, coming
            self._before = old
            facts = {"encoder_id": new.encoder_id, "before": old.encoder.encoder_id}
            logger.info("encoder.changed", extra=facts)
            await old.unused()
            return old.encoder

    async def let_go(self, clock: Clock, seconds: float) -> None:
        """Drop what served before after this time; of what it ranked only the verdict counts from then on."""
        before = self._before
        await clock.sleep(seconds)
        if self._before is before:
            self._before = None


def _decide_anew(router: Router, query: Query, ranking: Ranking) -> Decision:
    """Decide without the ranking's scores, which mean nothing here; the task may have waited long."""
    chosen = query.capability
    if chosen is None and ranking.in_scope and ranking.winner is not None:
        chosen = ranking.winner.capability
    known = next((one.similarity for one in ranking.capabilities if one.capability == chosen), None)
    similarity = query.similarity if known is None else known
    decision = router.decide(replace(query, capability=chosen, similarity=similarity))
    is_outside = decision.outcome is Outcome.OUT_OF_SCOPE and chosen is None and ranking.capabilities
    reason = Rejection.BELOW_SCOPE_FLOOR.value if is_outside else decision.reason
    return replace(decision, reason=reason, advice=ranking.advice)
