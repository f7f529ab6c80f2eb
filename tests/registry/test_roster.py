"""The roster's summaries are kept; they say what making them anew would say."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.identifiers import AgentId, InstanceId, LeaseId
from dispatcher.protocol.frames import HeartbeatFrame
from dispatcher.registry.agent import InboxKind, Instance, Liveness, LivenessRules
from dispatcher.registry.hearing import Hearing
from dispatcher.registry.observation import Summary, summarise
from dispatcher.registry.roster import Roster

ORDER, FAQ = AgentId("order"), AgentId("faq")
RULES = LivenessRules()


def instance(agent_id: AgentId, number: int, age_s: float = 0.0, *, draining: bool = False) -> Instance:
    return Instance(
        agent_id=agent_id,
        name=f"n{number}",
        instance_id=InstanceId(f"i{number}"),
        lease_id=LeaseId(f"l{number}"),
        inbox=InboxKind.POSTGRES,
        draining=draining,
        seen_age_s=age_s,
    )


class World:
    """A roster, the clock it hears with, and everything that changes them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.hearing = Hearing(self, RULES.suspect_after_s)
        self.roster = Roster(rules=RULES, hearing=self.hearing)

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def passes(self, seconds: float) -> None:
        self.now += seconds

    def hears(self, is_up: bool) -> None:
        self.hearing.set(is_up=is_up)

    def beats(self, agent_id: AgentId, number: int, running: int) -> None:
        frame = HeartbeatFrame(
            agent_id=agent_id, instance_id=f"i{number}", lease_id=f"l{number}", running=running
        )
        self.roster.beat(frame)

    def registers(self, row: Instance) -> None:
        self.roster.put(row)

    def leaves(self, agent_id: AgentId, number: int) -> None:
        self.roster.drop(agent_id, LeaseId(f"l{number}"))

    def is_removed(self, agent_id: AgentId) -> None:
        self.roster.forget(agent_id)

    def is_read(self, agent_id: AgentId, rows: Sequence[Instance]) -> None:
        self.roster.replace(agent_id, [row for row in rows if row.agent_id == agent_id])

    def all_are_read(self, rows: Sequence[Instance]) -> None:
        self.roster.replace_all(rows)

    def summary_made_anew(self, agent_id: AgentId) -> Summary:
        return summarise(self.roster.of(agent_id), now=self.hearing.monotonic(), rules=RULES)


AGENTS = st.sampled_from([ORDER, FAQ])
NUMBERS = st.sampled_from([1, 2, 3])
AGES = st.sampled_from([0.0, 10.0, 20.0, 50.0])
INSTANCES = st.builds(instance, AGENTS, NUMBERS, AGES, draining=st.booleans())
ROWS = st.lists(INSTANCES, max_size=4)
CHANGES = st.one_of(
    st.tuples(st.just(World.passes), st.sampled_from([0.5, 5.0, 15.0, 30.0])),
    st.tuples(st.just(World.hears), st.booleans()),
    st.tuples(st.just(World.beats), AGENTS, NUMBERS, st.integers(0, 5)),
    st.tuples(st.just(World.registers), INSTANCES),
    st.tuples(st.just(World.leaves), AGENTS, NUMBERS),
    st.tuples(st.just(World.is_removed), AGENTS),
    st.tuples(st.just(World.is_read), AGENTS, ROWS),
    st.tuples(st.just(World.all_are_read), ROWS),
)


@given(st.lists(CHANGES, max_size=25))
def test_a_kept_summary_says_what_one_made_anew_would(changes):
    world = World()

    for change, *about in changes:
        change(world, *about)
        for agent_id in (ORDER, FAQ):
            assert world.roster.summary(agent_id) == world.summary_made_anew(agent_id)


@pytest.mark.parametrize(
    ("age_s", "expected"), [(14.9, Liveness.ALIVE), (15.0, Liveness.SUSPECT), (45.0, Liveness.OFFLINE)]
)
def test_a_kept_summary_ends_by_time_alone(age_s, expected):
    world = World()
    world.registers(instance(ORDER, 1))
    assert world.roster.summary(ORDER).liveness is Liveness.ALIVE

    world.passes(age_s)

    assert world.roster.summary(ORDER).liveness is expected


def test_a_summary_is_kept_while_nothing_changes():
    world = World()
    world.registers(instance(ORDER, 1))
    world.registers(instance(FAQ, 1))

    first = world.roster.summary(ORDER)
    world.passes(1.0)
    world.beats(FAQ, 1, 3)

    assert world.roster.summary(ORDER) is first


def test_a_summary_is_kept_when_stored_rows_are_read_again_and_only_are_older():
    world = World()
    world.roster.replace_all([instance(ORDER, 1), instance(ORDER, 2), instance(FAQ, 3)])
    world.beats(ORDER, 1, 3)
    before, other = world.roster.summary(ORDER), world.roster.summary(FAQ)
    world.passes(1.0)

    world.roster.replace_all([instance(ORDER, 1, 1.0), instance(ORDER, 2, 1.0, draining=True)])
    assert world.roster.summary(ORDER) is not before
    assert world.roster.summary(ORDER).at_work == 1
    assert world.roster.summary(FAQ).at_work == 0

    world.roster.replace_all([instance(ORDER, 1), instance(ORDER, 2), instance(FAQ, 3)])
    kept, again = world.roster.summary(ORDER), world.roster.summary(FAQ)
    world.passes(1.0)
    world.roster.replace_all([instance(ORDER, 1, 1.0), instance(ORDER, 2, 1.0), instance(FAQ, 3, 1.0)])

    assert world.roster.summary(ORDER) is kept
    assert world.roster.summary(FAQ) is again is not other
    world.beats(ORDER, 2, 1)
    assert world.roster.summary(ORDER).reported == 4
