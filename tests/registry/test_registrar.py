"""Registrations, heartbeats and departures over one shared repository."""

import asyncio

import pytest

from dispatcher.errors import ConfigurationError, RegistrationError, UnavailableError
from dispatcher.identifiers import AgentId, Capability, LeaseId
from dispatcher.registry.agent import Liveness

ORDER, QUERY = AgentId("order"), Capability("order.query")


async def refusal(awaitable):
    with pytest.raises(RegistrationError) as refused:
        await awaitable
    return refused.value.error_code


async def test_a_registration_is_stored_seen_followed_and_announced(replica, repository, registration):
    await replica.registrar.start()
    granted = await replica.registrar.register(registration())

    assert repository.agents[ORDER].digest == granted.declaration_digest
    assert replica.view.capacity(ORDER) == 8
    assert [len(snapshot.agents) for snapshot in replica.snapshots] == [0, 1]
    assert (replica.prepared, replica.announced) == ([ORDER], 1)
    assert (granted.heartbeat_ms, granted.offline_after_ms) == (5000, 45000)
    assert len(granted.warnings) == 2


async def test_an_undeclared_environment_is_the_default(replica, repository, registration, declaration):
    await replica.registrar.register(registration())
    await replica.registrar.register(registration("faq", declaration(environment="staging")))

    assert {agent.environment for agent in repository.agents.values()} == {"production", "staging"}


async def test_an_unchanged_declaration_changes_nothing_but_the_lease(replica, repository, registration):
    first = await replica.registrar.register(registration(instance_id="before"))
    loads, snapshots = repository.loads, len(replica.snapshots)

    second = await replica.registrar.register(registration(instance_id="after"))

    assert second.lease_id != first.lease_id
    assert second.declaration_digest == first.declaration_digest
    assert (repository.loads, len(replica.snapshots)) == (loads, snapshots)
    assert [one.instance.instance_id for one in replica.view.instances(ORDER)] == ["after"]


async def test_a_restart_fences_its_own_older_lease_and_no_sibling(replica, registration, beat):
    sibling = await replica.registrar.register(registration(name="two"))
    older = await replica.registrar.register(registration(name="one", instance_id="before"))
    newer = await replica.registrar.register(registration(name="one", instance_id="after"))

    assert await refusal(replica.registrar.heartbeat_checked(beat(older))) == "lease_superseded"
    await replica.registrar.heartbeat_checked(beat(newer, running=1))
    await replica.registrar.heartbeat_checked(beat(sibling, running=2))
    assert replica.view.status(ORDER).running == 3


async def test_a_second_inbox_under_a_live_name_is_refused_until_the_first_is_offline(
    replica, registration, declaration, capability, beat, clock
):
    once = declaration(capability(idempotent=False))
    of_file = {"declaration": once, "inbox": "sqlite"}
    first = await replica.registrar.register(registration(instance_id="a", inbox_id="file-1", **of_file))
    rival = registration(instance_id="b", inbox_id="file-2", **of_file)

    code = await refusal(replica.registrar.register(rival))
    await replica.registrar.heartbeat_checked(beat(first))
    clock.now += 45.0
    await replica.registrar.register(rival)

    assert code == "private_inbox"
    assert await refusal(replica.registrar.heartbeat_checked(beat(first))) == "lease_superseded"


async def test_an_offline_private_instance_loses_its_lease_when_another_is_let_in(
    new_replica, registration, beat, clock
):
    here, there = new_replica(), new_replica()
    stopped = await here.registrar.register(registration(name="one", inbox="sqlite"))
    clock.now += 45.0

    await there.registrar.register(registration(name="two", inbox="sqlite"))
    here.registrar.heartbeat(beat(stopped))

    assert await refusal(here.registrar.heartbeat_checked(beat(stopped))) == "lease_superseded"
    assert [one.instance.name for one in there.view.instances(ORDER)] == ["two"]
    again = registration(name="one", instance_id="again", inbox="sqlite")
    assert await refusal(here.registrar.register(again)) == "private_inbox"


async def test_a_restart_with_the_same_inbox_is_granted_at_once(
    replica, repository, registration, declaration, capability
):
    once = declaration(capability(idempotent=False))
    for process in ("before", "after"):
        frame = registration(declaration=once, instance_id=process, inbox="sqlite", inbox_id="file-1")
        await replica.registrar.register(frame)

    ((stored, _),) = repository.rows.values()
    assert (stored.instance_id, stored.inbox_id) == ("after", "file-1")


async def test_a_changed_declaration_replaces_the_agents_for_all_instances(
    replica, registration, declaration
):
    await replica.registrar.register(registration(name="one"))
    await replica.registrar.register(registration(declaration=declaration(max_load=3), name="two"))

    assert replica.view.capacity(ORDER) == 6
    assert len(replica.snapshots) == 2


async def test_a_refused_registration_leaves_nothing(
    replica, repository, registration, declaration, capability
):
    fragile = declaration(capability(idempotent=False))

    code = await refusal(replica.registrar.register(registration(declaration=fragile, inbox="memory")))

    assert code == "memory_inbox_not_idempotent"
    assert (repository.agents, repository.rows, replica.snapshots) == ({}, {}, [])
    assert (replica.prepared, replica.announced) == ([], 0)


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (UnavailableError("no broker"), UnavailableError),
        (ConfigurationError("queue order exists with other arguments"), RegistrationError),
    ],
)
async def test_without_a_queue_nothing_is_registered_until_there_is_one(
    replica, repository, registration, error, refusal
):
    await replica.registrar.start()
    replica.no_queue = error
    with pytest.raises(refusal, match=error.message):
        await replica.registrar.register(registration())
    left = (dict(repository.agents), dict(repository.rows), replica.view.agents(), len(replica.snapshots))

    replica.no_queue = None
    await replica.registrar.register(registration())

    assert left == ({}, {}, (), 1)
    assert (replica.view.capacity(ORDER), replica.announced) == (8, 1)


async def test_without_a_queue_an_agent_keeps_what_it_had(replica, repository, registration, declaration):
    granted = await replica.registrar.register(registration(instance_id="before"))
    replica.no_queue = UnavailableError("no broker")

    with pytest.raises(UnavailableError):
        await replica.registrar.register(
            registration(declaration=declaration(max_load=3), instance_id="after")
        )

    assert repository.agents[ORDER].digest == granted.declaration_digest
    assert [one.instance.instance_id for one in replica.view.instances(ORDER)] == ["before"]
    assert replica.view.capacity(ORDER) == 8


async def test_the_queue_is_there_before_the_registration_is_stored(replica, repository, registration):
    seen = []

    async def look() -> None:
        seen.append((list(replica.prepared), replica.view.agents()))

    repository.before_save = look

    await replica.registrar.register(registration())

    assert seen == [([ORDER], ())]


async def test_a_broker_that_takes_its_time_holds_up_nobody_else(replica, registration):
    await replica.registrar.start()
    replica.before_queue = replica.registrar.refresh

    async with asyncio.timeout(5):
        await replica.registrar.register(registration())

    assert replica.view.agent(ORDER) is not None


async def test_an_instance_id_of_another_agent_is_refused(replica, registration):
    await replica.registrar.register(registration("faq", instance_id="same"))

    code = await refusal(replica.registrar.register(registration("order", instance_id="same")))

    assert code == "instance_id_taken"


async def test_a_second_instance_on_a_private_inbox_waits_until_the_first_is_gone(
    replica, registration, clock
):
    first = await replica.registrar.register(registration(name="one", inbox="sqlite"))
    second = registration(name="two", inbox="sqlite")
    assert await refusal(replica.registrar.register(second)) == "private_inbox"

    await replica.registrar.leave(ORDER, LeaseId(first.lease_id))
    await replica.registrar.register(second)
    clock.now += 46.0
    await replica.registrar.register(registration(name="three", inbox="memory"))


async def test_concurrent_registrations_are_made_one_after_the_other(replica, registration):
    frames = [registration(f"agent-{number}") for number in range(20)]

    async with asyncio.TaskGroup() as group:
        for frame in frames:
            group.create_task(replica.registrar.register(frame))

    assert len(replica.view.agents()) == 20
    assert [snapshot.version for snapshot in replica.snapshots] == list(range(1, 21))


async def test_what_routing_failed_to_follow_is_followed_later(replica, registration):
    replica.failure = UnavailableError("the encoder is gone")
    with pytest.raises(UnavailableError):
        await replica.registrar.register(registration())

    replica.failure = None
    await replica.registrar.refresh()
    await replica.registrar.refresh()

    assert [snapshot.version for snapshot in replica.snapshots] == [1]


async def test_a_refresh_brings_what_other_replicas_changed(new_replica, repository, registration):
    here, there = new_replica(), new_replica()
    await here.registrar.start()
    granted = await there.registrar.register(registration(name="one"))
    await here.registrar.refresh()
    assert here.view.capacity(ORDER) == 8
    assert here.snapshots[-1].version == 1
    loads = repository.loads

    await there.registrar.register(registration(name="two"))
    await there.registrar.drain(ORDER, LeaseId(granted.lease_id))
    await here.registrar.refresh()

    assert repository.loads == loads
    assert [one.instance.draining for one in here.view.instances(ORDER)] == [True, False]


async def test_a_heartbeat_may_come_before_its_lease_is_known_here(new_replica, registration, beat):
    here, there = new_replica(), new_replica()
    granted = await there.registrar.register(registration())

    here.registrar.heartbeat(beat(granted))
    await here.registrar.refresh()
    here.registrar.heartbeat(beat(granted, running=2))

    assert here.view.status(ORDER).running == 2


async def test_a_checked_heartbeat_finds_a_lease_granted_elsewhere(new_replica, registration, beat):
    here, there = new_replica(), new_replica()
    granted = await there.registrar.register(registration())

    await here.registrar.heartbeat_checked(beat(granted, running=2))

    assert here.view.status(ORDER).running == 2


async def test_a_checked_heartbeat_of_an_unknown_agent_is_refused(new_replica, registration, beat):
    here, there = new_replica(), new_replica()
    granted = await there.registrar.register(registration())
    await there.registrar.remove(ORDER)

    assert await refusal(here.registrar.heartbeat_checked(beat(granted))) == "unknown_agent"


async def test_heartbeats_write_nothing_and_signs_of_life_are_stored_together(
    replica, repository, registration, beat, clock
):
    leases = [await replica.registrar.register(registration(name=name)) for name in ("one", "two")]
    for lease in leases:
        replica.registrar.heartbeat(beat(lease))
    assert repository.touched == []

    await replica.registrar.record_signs_of_life()
    await replica.registrar.record_signs_of_life()

    assert repository.touched == [["order-one", "order-two"]]


async def test_an_agent_goes_offline_and_comes_back_by_itself(replica, registration, beat, clock):
    granted = await replica.registrar.register(registration())
    clock.now += 50.0
    assert replica.view.status(ORDER).liveness is Liveness.OFFLINE

    replica.registrar.heartbeat(beat(granted))

    assert replica.view.status(ORDER).liveness is Liveness.ALIVE


async def test_a_draining_instance_gets_nothing_and_a_gone_one_is_offline(replica, registration):
    granted = await replica.registrar.register(registration())
    lease = LeaseId(granted.lease_id)

    await replica.registrar.drain(ORDER, lease)
    assert (replica.view.status(ORDER).draining, replica.view.capacity(ORDER)) == (True, 0)
    await replica.registrar.leave(ORDER, lease)
    assert replica.view.status(ORDER).liveness is Liveness.OFFLINE
    assert replica.view.agent(ORDER) is not None
    assert replica.announced == 3


@pytest.mark.parametrize("action", ["drain", "leave"])
async def test_only_the_current_lease_can_drain_or_leave(replica, registration, action):
    act = getattr(replica.registrar, action)
    assert await refusal(act(ORDER, LeaseId("any"))) == "unknown_agent"
    await replica.registrar.register(registration())

    assert await refusal(act(ORDER, LeaseId("older"))) == "lease_superseded"


async def test_a_removed_agent_is_gone_everywhere(new_replica, registration):
    here, there = new_replica(), new_replica()
    await there.registrar.register(registration())
    await here.registrar.start()

    await there.registrar.remove(ORDER)
    await here.registrar.refresh()

    for replica in (here, there):
        assert replica.view.group(QUERY) == ()
        assert replica.snapshots[-1].agents == ()
    assert await refusal(here.registrar.remove(ORDER)) == "unknown_agent"


async def test_the_long_dead_are_cleared_away(replica, repository, registration, clock):
    await replica.registrar.register(registration(name="one"))
    clock.now += 3601.0
    await replica.registrar.register(registration(name="two"))

    await replica.registrar.clear_dead(3600.0)

    assert [row.name for row, _ in repository.rows.values()] == ["two"]
    assert [one.instance.name for one in replica.view.instances(ORDER)] == ["two"]


async def test_a_description_tells_declaration_and_observation_apart(replica, registration, beat, clock):
    granted = await replica.registrar.register(registration())
    replica.registrar.heartbeat(beat(granted, running=4))
    clock.now += 20.0

    (told,) = replica.registrar.describe()

    assert told == replica.registrar.describe_one(ORDER)
    assert (told.agent.agent_id, told.status.load, told.success) == (ORDER, 0.5, {QUERY: 0.8})
    (one,) = told.instances
    assert (one.name, one.liveness, one.age_s, one.running) == ("one", Liveness.SUSPECT, 20.0, 4)
    assert not hasattr(one, "lease_id")
    assert replica.registrar.describe_one(AgentId("faq")) is None
    assert set(replica.registrar.contracts) == {QUERY}
