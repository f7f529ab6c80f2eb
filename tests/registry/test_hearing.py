"""Agents keep the age they had while nobody could hear them."""

import pytest

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import AgentId
from dispatcher.registry.agent import Liveness
from dispatcher.registry.hearing import Hearing

ORDER = AgentId("order")
GRACE_S = 15.0


@pytest.fixture
def hearing(clock):
    return Hearing(clock, GRACE_S)


def passed(hearing, clock, seconds):
    before = hearing.monotonic()
    clock.now += seconds
    return hearing.monotonic() - before


def test_time_passes_until_it_is_told_otherwise(hearing, clock):
    assert passed(hearing, clock, 60.0) == 60.0
    hearing.set(is_up=True)
    assert passed(hearing, clock, 60.0) == 60.0


def test_time_stands_still_while_it_is_down_and_for_the_grace_after(hearing, clock):
    hearing.set(is_up=False)
    assert passed(hearing, clock, 3600.0) == 0.0

    hearing.set(is_up=True)

    assert passed(hearing, clock, GRACE_S - 1.0) == 0.0
    assert passed(hearing, clock, 3.0) == 2.0


def test_what_it_is_told_twice_changes_nothing(hearing, clock):
    hearing.set(is_up=False)
    clock.now += 10.0
    hearing.set(is_up=False)
    hearing.set(is_up=True)
    clock.now += 10.0
    hearing.set(is_up=True)

    assert passed(hearing, clock, 10.0) == 5.0


def test_a_second_outage_within_the_grace_is_one_with_the_first(hearing, clock):
    hearing.set(is_up=False)
    hearing.set(is_up=True)
    clock.now += GRACE_S - 1.0
    hearing.set(is_up=False)
    assert passed(hearing, clock, 3600.0) == 0.0

    hearing.set(is_up=True)

    assert passed(hearing, clock, GRACE_S + 1.0) == 1.0


def test_a_second_outage_after_the_grace_is_added(hearing, clock):
    for _ in range(2):
        hearing.set(is_up=False)
        clock.now += 60.0
        hearing.set(is_up=True)
        assert passed(hearing, clock, GRACE_S + 7.0) == 7.0


async def test_an_outage_of_ours_takes_no_agent_for_dead(replica, registration, clock):
    await replica.registrar.register(registration())
    clock.now += 5.0
    replica.view.hearing.set(is_up=False)
    clock.now += 600.0
    await replica.registrar.refresh()
    meanwhile = replica.view.status(ORDER)

    replica.view.hearing.set(is_up=True)
    clock.now += GRACE_S
    after_grace = replica.view.status(ORDER)
    clock.now += 40.0

    assert (meanwhile.liveness, meanwhile.capacity) == (Liveness.ALIVE, 8)
    assert after_grace.liveness is Liveness.ALIVE
    assert replica.view.status(ORDER).liveness is Liveness.OFFLINE


async def test_nobody_is_taken_for_idle_while_nobody_can_be_heard(replica, registration, beat, clock):
    granted = await replica.registrar.register(registration())
    clock.now += 10.0
    replica.registrar.heartbeat(beat(granted))
    before = replica.view.idle_agents()

    replica.view.hearing.set(is_up=False)
    meanwhile = replica.view.idle_agents()
    replica.view.hearing.set(is_up=True)

    assert (before, meanwhile, replica.view.idle_agents()) == ((ORDER,), (), (ORDER,))


async def test_another_replica_that_hears_is_believed(new_replica, registration, beat, clock):
    deaf, hears = new_replica(), new_replica()
    granted = await hears.registrar.register(registration())
    await deaf.registrar.refresh()
    clock.now += 40.0
    deaf.view.hearing.set(is_up=False)
    clock.now += 600.0

    hears.registrar.heartbeat(beat(granted))
    await hears.registrar.record_signs_of_life()
    await deaf.registrar.refresh()

    assert deaf.view.status(ORDER).liveness is Liveness.ALIVE


async def test_a_name_is_not_free_because_nobody_could_hear_its_holder(
    replica, registration, declaration, capability, clock
):
    once = {"declaration": declaration(capability(idempotent=False)), "inbox": "sqlite"}
    await replica.registrar.register(registration(instance_id="a", inbox_id="file-1", **once))
    replica.view.hearing.set(is_up=False)
    clock.now += 600.0

    with pytest.raises(RegistrationError) as refused:
        await replica.registrar.register(registration(instance_id="b", inbox_id="file-2", **once))

    assert refused.value.error_code == "private_inbox"


async def test_the_long_silent_are_not_cleared_away_for_an_outage_of_ours(
    replica, repository, registration, clock
):
    await replica.registrar.register(registration())
    replica.view.hearing.set(is_up=False)
    clock.now += 100_000.0

    await replica.registrar.clear_dead(86_400.0)

    assert len(repository.rows) == 1
