"""Routing as the rest of the dispatcher sees it: follow the registry, rank texts, decide."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from dispatcher.clock import Clock
from dispatcher.errors import RegistrationError, RequestError, UnavailableError
from dispatcher.identifiers import AgentId
from dispatcher.registry.agent import Agent
from dispatcher.registry.live import AgentDirectory
from dispatcher.routing.background import Contrast, background_texts, contrast_of
from dispatcher.routing.batcher import TextEncoder
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.choice import Choice, Query, Registry
from dispatcher.routing.decision import Decision
from dispatcher.routing.embedder import TextRefusedError, Vectors
from dispatcher.routing.encode_declared import (
    Said,
    encode_declared,
    encode_pieces,
    encode_takeable,
    said_of,
)
from dispatcher.routing.fitting import FitRules, Fitted, Fixed, Given, agree, fit
from dispatcher.routing.index import ExactIndex
from dispatcher.routing.ordering import LexicalShares
from dispatcher.routing.prepared import prepared
from dispatcher.routing.prototype import Prototype
from dispatcher.routing.prototype_store import IndexFactory, PrototypeStore, arrange
from dispatcher.routing.ranking import CapabilityScore, Ranker, Ranking
from dispatcher.routing.recent_texts import RecentTexts
from dispatcher.routing.reference import load_reference
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.slots import Key

__all__ = ["CapabilityScore", "Query", "Ranking", "Router"]

logger = logging.getLogger(__name__)

_NEVER = -2
_EMPTY = -1
"""Versions before the registry's first, which is 0."""

Prototypes = Mapping[Key, Prototype]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    removed: frozenset[Key]
    added: Mapping[Key, Prototype]

    def applied_to(self, prototypes: Prototypes) -> Prototypes:
        kept = {key: one for key, one in prototypes.items() if key not in self.removed}
        return {**kept, **self.added}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Current:
    """What holds until declarations or calibration change; rankings that were made lately included."""

    fitted: Fitted
    contrast: Contrast
    ranker: Ranker
    choice: Choice
    recent: RecentTexts[Ranking]


class Router:
    """Belongs to one event loop. `rank` and `decide` see either all of a sync or nothing of it."""

    def __init__(
        self,
        *,
        encoder: TextEncoder,
        directory: AgentDirectory,
        make_index: IndexFactory,
        rules: RoutingRules,
        clock: Clock,
    ) -> None:
        self._encoder = encoder
        self._directory = directory
        self._rules = rules
        self._clock = clock
        self._store = PrototypeStore(make_index, encoder.encoder_id, encoder.dimensions)
        self._said: dict[AgentId, Said] = {}
        self._version = _NEVER
        self._wanted: tuple[Sequence[Agent], int] = ((), _NEVER)
        self._lock = asyncio.Lock()
        self._fixed: Fixed | None = None
        self._current: _Current | None = None
        self._given: Given | None = None

    @property
    def encoder_id(self) -> str:
        """The encoder's name; calibrations belong to one."""
        return self._encoder.encoder_id

    @property
    def fitted(self) -> Fitted | None:
        """Which calibration is used and what self-calibration gives; None before the first sync."""
        return self._current.fitted if self._current else None

    @property
    def given(self) -> Given | None:
        """What `follow` was told last."""
        return self._given

    @property
    def calibration(self) -> Calibration | None:
        """The calibration in use; None before the first sync."""
        return self._current.fitted.used if self._current else None

    def follow(self, given: Given) -> None:
        """Go by what all replicas have agreed on, from now on; the registry's own calibration stays known."""
        self._given = given
        if self._current is not None:
            self._use(agree(self._current.fitted, given, self._fit_rules()), self._current.contrast)

    async def sync(self, agents: Sequence[Agent], version: int) -> None:
        """Follow the registry to `version`; only declarations whose texts changed are encoded.

        An agent with a text that the encoder does not take is left out, and tried again with the next
        version. Those overtaken by a later call while another one ran are skipped. A lower version is
        followed like any other: the registry goes back where its database is restored. Raises
        OverloadedError or UnavailableError from the encoder, and then nothing has changed.
        """
        self._wanted = (agents, version)
        async with self._lock:
            latest, newest = self._wanted
            if newest != self._version:
                await self._follow(latest, newest)

    async def _begin(self) -> None:
        """Have something to rank with, if it is nothing yet."""
        async with self._lock:
            if self._current is None:
                await self._follow((), _EMPTY)

    async def rank(self, texts: Sequence[str]) -> tuple[Ranking, ...]:
        """One ranking for each text, encoded in one batch.

        Raises as `sync` does, and RequestError `text_refused` where the encoder does not take one of them.
        """
        if self._current is None:
            await self._begin()
        recent = self._now().recent
        known = [recent.find(text) for text in texts]
        missing = [text for text, ranking in zip(texts, known, strict=True) if ranking is None]
        if missing:
            fresh = iter(await self._rank(missing))
            return tuple(ranking or next(fresh) for ranking in known)
        return tuple(ranking for ranking in known if ranking is not None)

    async def _rank(self, texts: Sequence[str]) -> Sequence[Ranking]:
        read = [prepared(text) for text in texts]
        vectors = await self._asked(read)
        table = self._store.look_up(read, vectors, self._rules.search_limit)
        current = self._now()
        made = tuple(current.ranker.rank(texts, vectors, table, current.contrast.of(vectors)))
        for ranking in made:
            current.recent.keep(ranking.text, ranking)
        return made

    def decide(self, query: Query, ranking: Ranking | None = None) -> Decision:
        """Choose an agent now, from memory; see `choice.Query` for what decides what."""
        return self._now().choice.decide(query, ranking)

    async def examine(self, agent: Agent) -> None:
        """Have the encoder read a declaration that is about to be registered; what is known costs nothing.

        Raises RegistrationError (`text_refused`) where the encoder does not take one of its texts, else
        as `sync` does.
        """
        before = self._said.get(agent.agent_id)
        said = said_of(agent, before)
        if before is None or said.texts is not before.texts:
            await self._taken(said)

    async def trial(self, agent: Agent, texts: Sequence[str]) -> tuple[Ranking, ...]:
        """Rank texts as if the agent were registered as given; changes nothing.

        Raises as `rank` and `examine` do.
        """
        fixed = await self._load_fixed()
        added = await self._taken(said_of(agent, None))
        vectors = await self._asked([prepared(text) for text in texts])
        # After the last wait, so that both are of one version.
        change = _Change(removed=self._keys_of({agent.agent_id}), added=added)
        prototypes = change.applied_to(self._store.prototypes)
        return await asyncio.to_thread(self._try, prototypes, fixed, texts, vectors)

    async def _asked(self, texts: Sequence[str]) -> Vectors:
        """Vectors of what somebody asks; that the encoder does not take it is the text's own fault."""
        try:
            return await self._encoder.encode(texts)
        except TextRefusedError as error:
            raise RequestError("the encoder does not take a text like this", code="text_refused") from error

    async def _follow(self, agents: Sequence[Agent], version: int) -> None:
        fixed = await self._load_fixed()
        before = self._said
        said = {agent.agent_id: said_of(agent, before.get(agent.agent_id)) for agent in agents}
        stale = {one for one, old in before.items() if one not in said or said[one].texts is not old.texts}
        fresh = {one: new for one, new in said.items() if one in stale or one not in before}
        encoded = await encode_takeable(self._encoder, fresh)
        change = _Change(removed=self._keys_of(stale), added=encoded.prototypes)
        fitted = self._current.fitted if self._current else None
        if stale or change.added or fitted is None:
            prototypes = change.applied_to(self._store.prototypes)
            fitted = await asyncio.to_thread(self._fit, prototypes, fixed, version)
            if self._given is not None:
                # What was followed while the thread fitted, which began with what was given before.
                fitted = agree(fitted, self._given, self._fit_rules())
        # From here on nothing waits: whoever ranks sees all of it or nothing.
        self._store.apply(change.removed, change.added.values())
        self._said = {one: new for one, new in said.items() if one not in encoded.refused}
        self._version = version
        self._use(fitted, self._current.contrast if self._current else Contrast(fixed.background))
        for agent_id in sorted(encoded.refused):
            logger.error("declaration.refused_by_encoder", extra={"agent_id": agent_id})

    def _fit(self, prototypes: Prototypes, fixed: Fixed, version: int) -> Fitted:
        registry = arrange(prototypes, self._encoder.dimensions)
        old = self._current.fitted if self._current else None
        made_of = (self._encoder.encoder_id, version)
        return fit(registry, fixed, made_of, old, self._fit_rules(), self._given)

    def _fit_rules(self) -> FitRules:
        return FitRules(
            similarity_floor=self._rules.similarity_floor,
            approval_margin=self._rules.approval_margin,
            lexical=LexicalShares(
                with_examples=self._rules.lexical_share, without=self._rules.lexical_share_bare
            ),
        )

    def _use(self, fitted: Fitted, contrast: Contrast) -> None:
        is_new = fitted.used is not self.calibration
        self._current = _Current(
            fitted=fitted,
            contrast=contrast,
            ranker=Ranker(self._store.keys, fitted, self._rules, self._version),
            choice=Choice(self._directory, self._rules, self._registry(fitted.used), self._clock),
            recent=RecentTexts(attrgetter("size")),
        )
        facts = {"registry_version": self._version, "refused": round(fitted.refused, 3)}
        if fitted.pending is not None:
            logger.warning("calibration.waits_for_approval", extra=facts)
        elif is_new:
            twins = sorted(fitted.used.twins)
            used = {"kind": fitted.used.kind, "floor": round(fitted.used.floor, 3), "twins": twins}
            logger.info("calibration.used", extra=facts | used)

    def _try(
        self, prototypes: Prototypes, fixed: Fixed, texts: Sequence[str], vectors: Vectors
    ) -> tuple[Ranking, ...]:
        # The next version, because of the present one what is in force counts.
        fitted = self._fit(prototypes, fixed, self._version + 1)
        store = PrototypeStore(ExactIndex, self._encoder.encoder_id, self._encoder.dimensions)
        store.apply((), prototypes.values())
        read = [prepared(text) for text in texts]
        table = store.look_up(read, vectors, self._rules.search_limit)
        ranker = Ranker(store.keys, fitted, self._rules, self._version)
        return tuple(ranker.rank(texts, vectors, table, contrast_of(vectors, fixed.background)))

    async def _taken(self, said: Said) -> dict[Key, Prototype]:
        try:
            return await encode_declared(self._encoder, [said])
        except TextRefusedError as error:
            raise RegistrationError(
                "the encoder does not take one of the texts that describe the agent", code="text_refused"
            ) from error

    async def _load_fixed(self) -> Fixed:
        if self._fixed is None:
            background = await encode_pieces(self._encoder, [*map(prepared, background_texts())])
            self._fixed = Fixed(background=background, reference=load_reference(self._encoder.encoder_id))
        return self._fixed

    def _keys_of(self, agents: Collection[AgentId]) -> frozenset[Key]:
        return frozenset(key for key in self._store.prototypes if key.agent_id in agents)

    def _now(self) -> _Current:
        if self._current is None:
            raise UnavailableError("routing has not followed the registry yet")
        return self._current

    def _registry(self, used: Calibration) -> Registry:
        return Registry(
            similarity=used.similarity,
            keys=len(self._store.prototypes),
            encoder_id=self._encoder.encoder_id,
            version=self._version,
            calibration=used.kind,
            twins=used.twins,
        )
