"""Routing follows what is registered: what it can't read is refused before, changes are taken in together."""

import asyncio

import pytest

from dispatcher.errors import RegistrationError, UnavailableError
from dispatcher.identifiers import AgentId


@pytest.mark.parametrize("error", [RegistrationError("no", code="text_refused"), UnavailableError("down")])
async def test_what_routing_can_not_read_is_not_stored(replica, repository, registration, error):
    replica.unreadable = error

    with pytest.raises(type(error)) as refused:
        await replica.registrar.register(registration())

    assert refused.value is error
    assert (repository.agents, repository.rows, replica.snapshots) == ({}, {}, [])
    assert replica.prepared == []
    assert [agent.environment for agent in replica.examined] == ["production"]


class Held:
    """Holds whoever comes until it is let."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.let = asyncio.Event()

    async def __call__(self) -> None:
        self.arrived.set()
        await self.let.wait()


class Counted:
    """Tells when so many registrations are about to be stored."""

    def __init__(self, repository, wanted) -> None:
        self._repository = repository
        self._left = wanted
        self.all_there = asyncio.Event()

    async def __call__(self) -> None:
        self._repository.before_save = self
        self._left -= 1
        if self._left == 0:
            self.all_there.set()


async def test_registrations_that_come_while_one_is_followed_are_stored_and_followed_together(
    replica, repository, registration
):
    held, counted = Held(), Counted(repository, 4)
    replica.before_change, repository.before_save = held, counted
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        first = group.create_task(replica.registrar.register(registration("a")))
        await held.arrived.wait()
        others = [group.create_task(replica.registrar.register(registration(name))) for name in "bcd"]
        await counted.all_there.wait()
        await replica.registrar.clear_dead(after_s=60)  # in its turn behind the last one stored
        assert not any(task.done() for task in (first, *others))
        assert len(repository.agents) == 4
        held.let.set()

    assert [len(snapshot.agents) for snapshot in replica.snapshots] == [1, 4]


async def test_heartbeats_and_departures_do_not_wait_for_routing(replica, registration, beat):
    lease = await replica.registrar.register(registration("a"))
    held = replica.before_change = Held()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(replica.registrar.register(registration("b")))
        await held.arrived.wait()
        await replica.registrar.drain(AgentId("a"), lease.lease_id)
        await replica.registrar.heartbeat_checked(beat(lease))
        held.let.set()

    assert replica.view.status(AgentId("a")).draining


async def test_what_could_not_be_followed_is_followed_by_the_next_who_asks(replica, registration):
    replica.failure = UnavailableError("the encoder is not there")
    with pytest.raises(UnavailableError):
        await replica.registrar.register(registration("a"))
    replica.failure = None

    await replica.registrar.refresh()
    await replica.registrar.refresh()

    assert [len(snapshot.agents) for snapshot in replica.snapshots] == [1]


async def test_an_earlier_state_of_the_registry_is_followed_too(replica, repository, registration):
    await replica.registrar.register(registration("a"))
    of_one = repository.backup()
    await replica.registrar.register(registration("b"))
    repository.restore(of_one)

    await replica.registrar.refresh()

    assert [len(snapshot.agents) for snapshot in replica.snapshots] == [1, 2, 1]


async def test_the_other_replicas_follow_at_the_same_time(replica, registration):
    held = replica.before_change = Held()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(replica.registrar.register(registration("a")))
        await held.arrived.wait()
        announced = replica.announced
        held.let.set()

    assert (announced, replica.announced) == (1, 1)
