"""The router follows the registry, ranks and decides; what did not change costs nothing."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import pytest

from dispatcher.errors import OverloadedError, RegistrationError, RequestError, UnavailableError
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.decision import Outcome
from dispatcher.routing.embedder import TextRefusedError
from dispatcher.routing.fitting import Given
from dispatcher.routing.hashing_encoder import HashingEncoder

PARCEL = (
    "parcel.track",
    "I track the parcel",
    "where is the parcel",
    "is the parcel late",
    "track my parcel",
)
REFUND = ("refund.pay", "I pay the refund", "when comes the refund", "I want a refund", "refund my payment")
POEM = ("poem.write", "I write a poem", "write me a poem", "a poem on spring", "poem with rhymes")
HELD = Calibration(encoder_id="hashing-ngram-1", registry_version=1, kind="labelled 7", floor=0.7, curve=None)


class CountingEncoder:
    """Passes on to another encoder and remembers the texts."""

    def __init__(self, inner) -> None:
        self.inner = inner
        self.encoder_id = inner.encoder_id
        self.dimensions = inner.dimensions
        self.texts: list[str] = []
        self.passages: list[str] = []
        self.failure: Exception | None = None
        self.refused: set[str] = set()

    async def encode(self, texts, *, as_passages=False):
        if self.failure is not None:
            raise self.failure
        if self.refused & set(texts):
            raise TextRefusedError("refused (400)")
        self.texts += texts
        if as_passages:
            self.passages += texts
        return await self.inner.encode(texts, as_passages=as_passages)


@pytest.fixture
def counting(hashing):
    return CountingEncoder(hashing)


@pytest.fixture
def agents(an_agent, a_capability):
    return [an_agent("p", a_capability(*PARCEL)), an_agent("r", a_capability(*REFUND))]


@pytest.fixture
async def router(router_of, directory, counting, agents):
    directory.agents = agents
    router = router_of(encoder=counting)
    await router.sync(agents, 1)
    counting.texts.clear()
    return router


async def _winner(router, text):
    (ranking,) = await router.rank([text])
    return ranking.winner.capability


async def test_a_text_is_ranked_and_decided(router, a_query):
    parcel, refund = await router.rank(["where is my parcel", "please refund me"])

    assert (parcel.winner.capability, refund.winner.capability) == ("parcel.track", "refund.pay")
    assert parcel.in_scope
    decision = router.decide(a_query(), parcel)
    assert (decision.outcome, decision.agent_id) == (Outcome.SELECTED, "p")
    assert decision.elapsed_ms > 0


async def test_the_winner_is_found_whether_its_agents_are_up_or_not(router, directory, a_query):
    directory.agents = []

    (ranking,) = await router.rank(["where is my parcel"])

    assert ranking.winner.capability == "parcel.track"
    assert router.decide(a_query(), ranking).outcome is Outcome.UNAVAILABLE


async def test_an_unchanged_registry_costs_nothing(router, counting, agents):
    before = router.calibration

    await router.sync(agents, 2)

    assert counting.texts == []
    assert router.calibration is before
    assert (await router.rank(["text"]))[0].registry_version == 2


async def test_only_changed_declarations_are_encoded(router, counting, agents, an_agent, a_capability):
    poem = an_agent("w", a_capability(*POEM))

    await router.sync([*agents, poem], 2)

    assert set(counting.texts) == set(POEM[1:])
    assert await _winner(router, "a poem please") == "poem.write"


async def test_descriptions_are_passages_and_what_people_say_is_not(router, counting):
    assert counting.passages == [PARCEL[1], REFUND[1]]

    await router.rank(["a request"])

    assert len(counting.passages) == 2


async def test_a_changed_agent_loses_what_it_no_longer_declares(router, agents, an_agent, a_capability):
    await router.sync([agents[0], an_agent("r", a_capability(*POEM))], 2)

    (ranking,) = await router.rank(["please refund me"])

    assert {one.capability for one in ranking.capabilities} == {"parcel.track", "poem.write"}


async def test_a_removed_agent_is_forgotten(router, agents):
    await router.sync(agents[:1], 2)

    assert await _winner(router, "please refund me") == "parcel.track"


async def test_a_registry_that_goes_back_to_an_earlier_version_is_followed(router, agents):
    await router.sync(agents[:1], 0)

    (ranking,) = await router.rank(["please refund me"])
    assert (ranking.winner.capability, ranking.registry_version) == ("parcel.track", 0)


async def test_versions_overtaken_while_another_ran_are_skipped(router, agents, an_agent, a_capability):
    poem = an_agent("w", a_capability(*POEM))

    await asyncio.gather(router.sync([], 2), router.sync(agents[:1], 3), router.sync([*agents, poem], 4))

    (ranking,) = await router.rank(["a poem please"])
    assert (ranking.winner.capability, ranking.registry_version) == ("poem.write", 4)


async def test_a_failed_sync_changes_nothing_and_can_be_repeated(
    router, counting, agents, an_agent, a_capability
):
    every = [*agents, an_agent("w", a_capability(*POEM))]
    counting.failure = OverloadedError("full")
    with pytest.raises(OverloadedError):
        await router.sync(every, 2)
    counting.failure = None
    assert (await router.rank(["a poem please"]))[0].registry_version == 1

    await router.sync(every, 2)

    assert await _winner(router, "a poem please") == "poem.write"


@pytest.fixture
def newcomers(an_agent, a_capability):
    late = a_capability("late", "what is late", "late")
    return an_agent("w", a_capability(*POEM)), an_agent("z", late)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
async def test_an_agent_with_a_text_that_is_refused_is_left_out_alone_until_it_is_taken(
    router, counting, directory, newcomers, caplog, place
):
    poem, late = newcomers
    every = [*directory.agents, late]
    every.insert(place, poem)
    counting.refused = {POEM[3]}
    await router.sync(every, 2)

    (ranking,) = await router.rank(["a poem please"])
    assert {one.capability for one in ranking.capabilities} == {"parcel.track", "refund.pay", "late"}
    assert [one.agent_id for one in caplog.records if "declaration.refused" in one.message] == ["w"]

    counting.refused = set()
    await router.sync(every, 3)
    assert await _winner(router, "a poem please") == "poem.write"


async def test_of_a_changed_declaration_that_is_refused_nothing_stays(
    router, counting, agents, an_agent, a_capability
):
    counting.refused = {POEM[1]}

    await router.sync([agents[0], an_agent("r", a_capability(*POEM))], 2)

    (ranking,) = await router.rank(["please refund me"])
    assert [one.capability for one in ranking.capabilities] == ["parcel.track"]


async def test_a_declaration_is_examined_before_it_is_registered(router, counting, an_agent, a_capability):
    poem = an_agent("w", a_capability(*POEM))
    counting.refused = {POEM[2]}

    with pytest.raises(RegistrationError) as refused:
        await router.examine(poem)
    with pytest.raises(RegistrationError):
        await router.trial(poem, ["a poem please"])

    assert refused.value.error_code == "text_refused"
    assert "poem" not in refused.value.message
    assert (await router.rank(["a poem please"]))[0].registry_version == 1
    counting.refused, counting.failure = set(), OverloadedError("full")
    with pytest.raises(OverloadedError):
        await router.examine(poem)


async def test_to_examine_what_is_known_needs_no_encoder(router, counting, agents, an_agent, a_capability):
    counting.failure = UnavailableError("down")

    await router.examine(agents[0])
    await router.examine(an_agent("p", a_capability(*PARCEL), max_load=3))


@pytest.fixture
def moved(an_agent, a_capability):
    return an_agent("p", a_capability(*PARCEL), environment="staging")


async def test_what_no_text_says_is_followed_without_fitting_anew(
    router, counting, moved, directory, a_query
):
    before = router.fitted
    directory.agents = [moved, *directory.agents[1:]]

    await router.sync(directory.agents, 2)

    (ranking,) = await router.rank(["where is my parcel"])
    assert router.fitted is before
    assert counting.texts == ["where is my parcel"]
    assert ranking.registry_version == 2
    assert router.decide(a_query(environment="staging"), ranking).agent_id == "p"


async def test_a_short_queue_at_the_encoder_is_enough(router_of, agents):
    encoder = BatchingEncoder(HashingEncoder(), queue_limit=64, batch_size=8)
    try:
        router = router_of(encoder=encoder)
        await router.sync(agents, 1)
        assert await _winner(router, "where is my parcel") == "parcel.track"
    finally:
        encoder.close()


async def test_before_the_first_sync_nothing_is_registered(router_of, a_query, agents):
    router = router_of()
    with pytest.raises(UnavailableError):
        router.decide(a_query())

    (ranking,) = await router.rank(["where is my parcel"])

    assert not ranking.in_scope
    assert router.decide(a_query(), ranking).reason == "nothing_registered"
    await router.sync(agents, 0)
    assert await _winner(router, "where is my parcel") == "parcel.track"


async def test_a_trial_ranks_as_if_registered_and_changes_nothing(router, an_agent, a_capability):
    poem, before = an_agent("w", a_capability(*POEM)), router.calibration

    (tried,) = await router.trial(poem, ["a poem please"])

    assert tried.winner.capability == "poem.write"
    assert await _winner(router, "a poem please") != "poem.write"
    assert router.calibration is before


async def test_a_trial_replaces_what_the_agent_declares_now(router, an_agent, a_capability):
    (tried,) = await router.trial(an_agent("r", a_capability(*POEM)), ["please refund me"])

    assert {one.capability for one in tried.capabilities} == {"parcel.track", "poem.write"}


async def test_a_trial_works_before_anything_is_registered(router_of, agents):
    (tried,) = await router_of().trial(agents[0], ["where is my parcel"])

    assert tried.winner.capability == "parcel.track"


async def test_it_does_not_matter_in_which_order_agents_came(router_of, agents, an_agent, a_capability):
    every = [*agents, an_agent("w", a_capability(*POEM))]
    at_once, one_by_one = router_of(), router_of()
    await at_once.sync(every, 9)
    for count in range(1, 4):
        await one_by_one.sync(every[::-1][:count], count)
    await one_by_one.sync(every, 9)

    texts = ["where is my parcel", "poem", "who are you"]

    assert await at_once.rank(texts) == await one_by_one.rank(texts)
    assert replace(at_once.calibration, registry_version=0) == replace(
        one_by_one.calibration, registry_version=0
    )


async def test_a_curve_that_waits_is_not_used(router_of, an_agent, a_capability, caplog):
    router = router_of()
    vague = an_agent("v", a_capability("vague", "x", "what", "how", "who", "why"))
    vaguer = a_capability("vaguer", "the what", "how do I do it", "what is the thing", "who is that")
    await router.sync([vague], 1)
    used = router.calibration

    await router.sync([vague, an_agent("w", vaguer)], 2)

    assert router.calibration is used
    assert router.fitted.pending is router.fitted.newest is not None
    assert "calibration.waits_for_approval" in caplog.messages


class LateExecutor(ThreadPoolExecutor):
    """What it was given is done at once and told once it is let."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.is_done = Event()
        self.is_let = Event()

    def submit(self, call, /, *args, **kwargs):
        def held():
            result = call(*args, **kwargs)
            self.is_done.set()
            assert self.is_let.wait(20)
            return result

        return super().submit(held)


@pytest.fixture
def late():
    with LateExecutor() as executor, ThreadPoolExecutor(max_workers=1) as waiting:
        yield executor, waiting


@pytest.mark.parametrize("synced", [True, False])
async def test_what_is_followed_while_a_sync_fits_is_used(router_of, agents, late, synced):
    router, loop, (executor, waiting) = router_of(), asyncio.get_running_loop(), late
    if synced:
        await router.sync(agents[:1], 1)
    loop.set_default_executor(executor)
    async with asyncio.TaskGroup() as group:
        group.create_task(router.sync(agents, 2))
        assert await loop.run_in_executor(waiting, executor.is_done.wait, 20)
        router.follow(Given(base=HELD, is_held=True))
        executor.is_let.set()

    assert (router.calibration.kind, router.calibration.floor) == ("labelled 7", 0.7)
    assert router.fitted.newest.registry_version == 2


async def test_a_trial_is_calibrated_as_the_registrys_next_version_would_be(
    router_of, agents, an_agent, a_capability
):
    router, poem = router_of(), an_agent("w", a_capability(*POEM))
    await router.sync(agents, 3)
    router.follow(Given(base=replace(router.calibration, floor=0.9)))
    assert router.calibration.floor == 0.9

    (tried,) = await router.trial(poem, ["a poem please"])

    await router.sync([*agents, poem], 4)
    (ranking,) = await router.rank(["a poem please"])
    assert tried.scope_floor == ranking.scope_floor != 0.9


async def test_a_text_is_ranked_once_until_the_registry_changes(router, counting, agents):
    first = await router.rank(["where is my parcel", "please refund me"])
    counting.texts.clear()

    again = await router.rank(["please refund me", "new", "where is my parcel"])

    assert counting.texts == ["new"]
    assert [again[2], again[0]] == list(first)
    await router.sync(agents[:1], 2)
    (ranking,) = await router.rank(["please refund me"])
    assert ranking.winner.capability == "parcel.track"


async def test_a_text_that_the_encoder_does_not_take_is_said_to_be_so(router, counting):
    counting.failure = TextRefusedError("refused (400)")

    with pytest.raises(RequestError) as ranked:
        await router.rank(["a text of its own"])

    assert ranked.value.error_code == "text_refused"
