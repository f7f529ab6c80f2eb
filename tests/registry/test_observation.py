"""Ages, and the status that follows from them."""

import pytest

from dispatcher.protocol.frames import HeartbeatFrame
from dispatcher.registry.agent import Liveness, LivenessRules
from dispatcher.registry.liveness import is_live, liveness
from dispatcher.registry.observation import Observation, observe, summarise

RULES = LivenessRules()


def seen(instance, *, at=100.0, running=None):
    heartbeat = (
        running
        if running is None
        else HeartbeatFrame(
            agent_id="order", instance_id=instance.instance_id, lease_id=instance.lease_id, running=running
        )
    )
    return Observation(instance=instance, since=at, seen_at=at, heartbeat=heartbeat)


def summary(*observations, attempts_open=0, now=100.0):
    found = summarise(observations, now=now, rules=RULES)
    return found.status(max_load=8, attempts_open=attempts_open)


@pytest.mark.parametrize(
    ("age_s", "expected"),
    [
        (0.0, Liveness.ALIVE),
        (14.9, Liveness.ALIVE),
        (15.0, Liveness.SUSPECT),
        (44.9, Liveness.SUSPECT),
        (45.0, Liveness.OFFLINE),
    ],
)
def test_missed_heartbeats_make_an_instance_suspect_then_offline(age_s, expected):
    assert liveness(age_s, RULES) is expected
    assert is_live(age_s, RULES) is (expected is not Liveness.OFFLINE)


def test_an_agent_without_instances_is_offline():
    status = summary(attempts_open=3)

    assert (status.liveness, status.capacity, status.running, status.draining) == (
        Liveness.OFFLINE,
        0,
        3,
        False,
    )
    assert status.load == 1.0


def test_capacity_and_running_are_sums_over_live_instances(instance):
    status = summary(
        seen(instance("one"), running=2),
        seen(instance("two"), at=80.0, running=3),
        seen(instance("three"), at=50.0, running=7),
        seen(instance("four")),
    )

    assert (status.liveness, status.capacity, status.running) == (Liveness.ALIVE, 24, 5)


def test_attempts_open_in_the_ledger_count_when_they_are_more(instance):
    assert summary(seen(instance(), running=2), attempts_open=6).running == 6


def test_a_draining_instance_adds_no_capacity(instance):
    leaving = seen(instance("one", draining=True), running=4)

    both = summary(leaving, seen(instance("two")))
    alone = summary(leaving)

    assert (both.capacity, both.running, both.draining) == (8, 4, False)
    assert (alone.capacity, alone.running, alone.draining) == (0, 4, True)


def test_a_lease_seen_for_the_first_time_has_the_stored_age(instance):
    row = instance(age_s=20.0)
    superseded = seen(instance(lease="older"), running=3)

    for known in (None, superseded):
        assert observe(known, row, 100.0, RULES) == Observation(instance=row, since=100.0, seen_at=80.0)


def test_a_known_lease_keeps_the_age_that_was_measured_here(instance):
    known = seen(instance(), at=94.0, running=3)

    found = observe(known, instance(age_s=2.0, draining=True), 100.0, RULES)

    assert (found.seen_at, found.running, found.instance.draining) == (94.0, 3, True)


def test_a_heartbeat_that_only_another_replica_heard_counts(instance):
    known = seen(instance(), at=80.0, running=3)

    assert observe(known, instance(age_s=2.0), 100.0, RULES).seen_at == 98.0
