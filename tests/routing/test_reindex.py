"""The encoder is changed while requests are ranked: all is of the old one, or all of the new one."""

import asyncio
import logging
from dataclasses import replace

import pytest

from dispatcher import records
from dispatcher.errors import OverloadedError, UnavailableError
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.decision import Outcome
from dispatcher.routing.fitting import Given
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.reindex import ReindexingRouter

PARCEL = (
    "parcel.track",
    "I track the parcel",
    "where is the parcel",
    "is the parcel late",
    "track my parcel",
)
REFUND = ("refund.pay", "I pay the refund", "when comes the refund", "I want a refund", "refund my payment")
POEM = ("poem.write", "I write a poem", "write me a poem", "a poem on spring", "poem with rhymes")
OLD, NEW = "hashing-ngram-1", "other"


class Gated:
    """Passes on to another encoder; a call waits until it is let through, or all are."""

    def __init__(self, inner, encoder_id) -> None:
        self.inner = inner
        self.encoder_id = encoder_id
        self.dimensions = inner.dimensions
        self.failure: Exception | None = None
        self.arrived = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._is_open = False

    def let(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.set_result(None)

    def open(self) -> None:
        self._is_open = True
        self.let()

    async def encode(self, texts, *, as_passages=False):
        self.arrived.set()
        if not self._is_open:
            self._waiting.append(asyncio.get_running_loop().create_future())
            await self._waiting[-1]
        if self.failure is not None:
            raise self.failure
        return await self.inner.encode(texts, as_passages=as_passages)


@pytest.fixture
def agents(an_agent, a_capability, directory):
    directory.agents = [an_agent("p", a_capability(*PARCEL)), an_agent("r", a_capability(*REFUND))]
    return directory.agents


@pytest.fixture
def other():
    """Same texts, same vectors: only its id tells it from the old one."""
    encoder = BatchingEncoder(HashingEncoder())
    yield Gated(encoder, NEW)
    encoder.close()


@pytest.fixture
async def router(router_of, hashing, agents):
    router = ReindexingRouter(lambda encoder: router_of(encoder=encoder), hashing)
    await router.sync(agents, 1)
    return router


async def _ids(router, *texts):
    return {ranking.encoder_id for ranking in await router.rank(texts)}


async def test_requests_are_ranked_with_the_old_one_until_the_new_one_is_ready(
    router, other, hashing, caplog
):
    caplog.set_level(logging.INFO)
    async with asyncio.TaskGroup() as group:
        change = group.create_task(router.change_encoder(other))
        seen: list[set[str]] = []
        while router.encoder is hashing:
            seen.append(await _ids(router, f"where is my parcel {len(seen)}"))
            other.let()

    assert change.result() is hashing
    assert len(seen) > 3
    assert seen == [{OLD}] * len(seen)
    other.open()
    assert await _ids(router, "where is my parcel") == {NEW}
    assert (router.calibration.encoder_id, router.calibration.registry_version) == (NEW, 1)
    assert router.encoder is other
    assert "encoder.changed" in caplog.messages


async def test_a_ranking_under_way_is_all_of_the_old_one_and_keeps_its_encoder(
    router_of, hashing, agents, other
):
    old = Gated(hashing, OLD)
    router = ReindexingRouter(lambda encoder: router_of(encoder=encoder), old)
    async with asyncio.TaskGroup() as group:
        synced = group.create_task(router.sync(agents, 1))
        while not synced.done():
            old.let()
            await asyncio.wait([synced], timeout=0)
        old.arrived.clear()
        ranked = group.create_task(router.rank(["where is my parcel", "refund me"]))
        await old.arrived.wait()
        other.open()
        change = group.create_task(router.change_encoder(other))
        while router.encoder is old:
            await asyncio.wait([change], timeout=0)

        assert await _ids(router, "where is my parcel") == {NEW}
        assert not change.done()
        old.open()

    assert {one.encoder_id for one in ranked.result()} == {OLD}
    winners = [one.winner for one in ranked.result()]
    assert [one and one.capability for one in winners] == ["parcel.track", "refund.pay"]
    assert change.result() is old


async def test_what_the_registry_takes_up_meanwhile_is_taken_up_by_both(
    router, other, agents, an_agent, a_capability
):
    every = [*agents, an_agent("w", a_capability(*POEM))]
    async with asyncio.TaskGroup() as group:
        change = group.create_task(router.change_encoder(other))
        await other.arrived.wait()
        await router.sync(every, 2)
        (before,) = await router.rank(["a poem please"])
        other.open()

    (after,) = await router.rank(["a poem please"])
    assert change.done()
    assert [(one.winner.capability, one.registry_version, one.encoder_id) for one in (before, after)] == [
        ("poem.write", 2, OLD),
        ("poem.write", 2, NEW),
    ]
    await router.sync(agents, 3)
    (later,) = await router.rank(["a poem please"])
    assert (later.winner.capability == "poem.write", later.registry_version) == (False, 3)


@pytest.mark.parametrize("failure", [OverloadedError("full"), UnavailableError("gone")])
async def test_a_change_that_fails_changes_nothing_and_can_be_repeated(router, other, failure):
    other.open()
    other.failure = failure
    before = router.calibration

    with pytest.raises(type(failure)):
        await router.change_encoder(other)

    assert await _ids(router, "where is my parcel") == {OLD}
    assert router.calibration is before
    other.failure = None
    await router.change_encoder(other)
    assert await _ids(router, "where is my parcel") == {NEW}


async def test_a_ranking_of_the_old_one_is_decided_by_the_old_one(router, other, a_query):
    (ranking,) = await router.rank(["where is my parcel"])
    expected = router.decide(a_query(), ranking)
    other.open()
    await router.change_encoder(other)

    decision = router.decide(a_query(), ranking)

    assert records.replace(decision, elapsed_ms=0) == records.replace(expected, elapsed_ms=0)
    assert decision.encoder_id == OLD
    (ranking,) = await router.rank(["where is my parcel"])
    assert router.decide(a_query(), ranking).encoder_id == NEW
    assert router.decide(a_query(capability="parcel.track")).encoder_id == NEW


async def test_of_a_ranking_by_an_encoder_long_gone_only_the_verdict_counts(router, a_query):
    inside, outside = await router.rank(["where is my parcel", "zzz 999 qqq"])
    inside, outside = (records.replace(one, encoder_id="long-gone") for one in (inside, outside))
    similarity = inside.winner.similarity

    decision = router.decide(a_query(), inside)
    refused = router.decide(a_query(text="zzz 999 qqq"), outside)
    named = router.decide(a_query(capability="refund.pay", similarity=1.0), inside)

    assert (decision.outcome, decision.agent_id) == (Outcome.SELECTED, "p")
    assert (decision.similarity, decision.encoder_id) == (similarity, OLD)
    assert {one.cosine for one in decision.candidates} == {0.0}
    assert (refused.outcome, refused.reason) == (Outcome.OUT_OF_SCOPE, "below_scope_floor")
    assert (named.agent_id, named.outcome) == ("r", Outcome.SELECTED)


async def test_of_two_changes_at_once_the_later_one_holds(router, other, hashing):
    third = Gated(other.inner, "third")
    for one in (other, third):
        one.open()

    first, second = await asyncio.gather(router.change_encoder(other), router.change_encoder(third))

    assert (first, second) == (hashing, other)
    assert await _ids(router, "where is my parcel") == {"third"}


async def test_before_the_first_sync_there_is_nothing_to_encode(router_of, hashing, other):
    router = ReindexingRouter(lambda encoder: router_of(encoder=encoder), hashing)
    other.open()

    assert await router.change_encoder(other) is hashing

    assert router.calibration is None
    assert await _ids(router, "where is my parcel") == {NEW}


async def test_the_serving_router_examines(router, hashing, an_agent, a_capability):
    await router.examine(an_agent("w", a_capability(*POEM)))

    hashing.stop()
    with pytest.raises(UnavailableError):
        await router.examine(an_agent("v", a_capability("verse.write", "I write verse")))


async def test_a_trial_is_the_serving_routers(router, other, an_agent, a_capability):
    other.open()
    await router.change_encoder(other)

    (tried,) = await router.trial(an_agent("w", a_capability(*POEM)), ["a poem please"])

    assert (tried.winner.capability, tried.encoder_id) == ("poem.write", NEW)


async def test_the_new_one_is_told_what_is_in_force_before_it_serves(
    router, other, agents, an_agent, a_capability
):
    introduced: list[tuple[str, str]] = []
    held = replace(router.calibration, kind="labelled 4", encoder_id=NEW, floor=0.7)
    every = [*agents, an_agent("w", a_capability(*POEM))]

    async def introduce(coming):
        if not introduced:
            await router.sync(every, 2)
        introduced.append((router.encoder_id, coming.encoder_id))
        coming.follow(Given(base=held, is_held=True))

    other.open()
    await router.change_encoder(other, introduce)

    assert introduced == [(OLD, NEW), (OLD, NEW)]
    assert (router.calibration.kind, router.calibration.floor) == ("labelled 4", 0.7)
    assert await _ids(router, "where is my parcel") == {NEW}


async def test_one_that_cannot_be_told_does_not_serve(router, other):
    async def introduce(_):
        raise UnavailableError("the database is gone")

    other.open()
    with pytest.raises(UnavailableError):
        await router.change_encoder(other, introduce)

    assert await _ids(router, "where is my parcel") == {OLD}


class HeldClock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.begun = asyncio.Event()
        self.goes_on = asyncio.Event()

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.begun.set()
        await self.goes_on.wait()


async def test_the_old_one_is_let_go_after_the_time_of_a_request(router, other, a_query):
    (ranking,) = await router.rank(["where is my parcel"])
    clock = HeldClock()
    other.open()
    await router.change_encoder(other)
    async with asyncio.TaskGroup() as group:
        group.create_task(router.let_go(clock, 120))
        await clock.begun.wait()
        before = router.decide(a_query(), ranking)
        clock.goes_on.set()

    after = router.decide(a_query(), ranking)

    assert clock.slept == [120]
    assert [(one.encoder_id, one.agent_id) for one in (before, after)] == [(OLD, "p"), (NEW, "p")]


async def test_one_that_served_after_it_has_its_own_time(router, other, a_query):
    first, second = HeldClock(), HeldClock()
    third = Gated(other.inner, "third")
    for one in (other, third):
        one.open()
    async with asyncio.TaskGroup() as group:
        await router.change_encoder(other)
        letting = group.create_task(router.let_go(first, 120))
        await first.begun.wait()
        (ranking,) = await router.rank(["where is my parcel"])
        await router.change_encoder(third)
        group.create_task(router.let_go(second, 120))
        await second.begun.wait()

        first.goes_on.set()
        await letting
        assert router.decide(a_query(), ranking).encoder_id == NEW
        second.goes_on.set()

    assert router.decide(a_query(), ranking).encoder_id == "third"
