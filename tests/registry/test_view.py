"""The live view."""

from dataclasses import dataclass

import pytest

from dispatcher.identifiers import AgentId, Capability, InstanceId, LeaseId
from dispatcher.protocol.frames import HeartbeatFrame
from dispatcher.registry.agent import Agent, Liveness
from dispatcher.registry.live import AgentDirectory
from dispatcher.registry.repository import CapabilityContract, RegistrySnapshot
from dispatcher.registry.view import LiveView

ORDER, FAQ, QUERY = AgentId("order"), AgentId("faq"), Capability("order.query")


@dataclass(frozen=True)
class Counted:
    agent_id: AgentId
    capability: Capability
    succeeded: float
    failed: float


@pytest.fixture
def view(clock, rules):
    return LiveView(rules=rules, clock=clock)


@pytest.fixture
def agent(declaration):
    def build(agent_id="order", *capabilities, digest="d"):
        return Agent(
            agent_id=AgentId(agent_id),
            declaration=declaration(*capabilities),
            digest=digest,
            environment="production",
        )

    return build


def snapshot(*agents, instances=(), contracts=(), version=1):
    return RegistrySnapshot(version=version, agents=agents, instances=instances, contracts=contracts)


def beat(name="one", *, lease=None, instance_id=None, running=3):
    return HeartbeatFrame(
        agent_id="order",
        instance_id=instance_id or f"order-{name}",
        lease_id=lease or f"lease-{name}",
        running=running,
    )


def contract(name, *declared_by):
    return CapabilityContract(
        capability=Capability(name), input_schema={}, output_schema={}, declared_by=frozenset(declared_by)
    )


def test_it_is_what_routing_asks(view):
    directory: AgentDirectory = view

    assert directory.group(QUERY) == ()
    assert directory.status(ORDER).liveness is Liveness.OFFLINE
    assert directory.status(ORDER).capacity == 0
    assert directory.success(ORDER, QUERY) == 0.8


def test_a_group_holds_every_agent_that_declares_the_capability_up_or_not(view, agent, instance):
    view.apply(snapshot(agent("second"), agent("order"), instances=[instance()]))

    assert [one.agent_id for one in view.group(QUERY)] == ["order", "second"]
    assert [one.agent_id for one in view.agents()] == ["order", "second"]
    assert view.status(AgentId("second")).liveness is Liveness.OFFLINE
    assert view.capacity(ORDER) == 8


def test_a_contract_is_declared_by_the_agents_that_declare_it(view, agent):
    view.apply(snapshot(agent(), contracts=[contract("order.query", FAQ), contract("left.behind", FAQ)]))

    assert set(view.contracts) == {QUERY}
    assert view.contracts[QUERY].declared_by == {ORDER}


def test_ages_grow_with_the_clock_and_heartbeats_end_them(view, agent, instance, clock):
    view.apply(snapshot(agent(), instances=[instance(age_s=10.0)]))

    clock.now += 10.0
    assert view.status(ORDER).liveness is Liveness.SUSPECT
    assert view.roster.beat(beat())
    assert view.status(ORDER).liveness is Liveness.ALIVE
    assert view.status(ORDER).running == 3
    clock.now += 45.0
    assert view.status(ORDER).liveness is Liveness.OFFLINE


@pytest.mark.parametrize(
    "stranger",
    [beat(lease="older"), beat(instance_id="another"), beat("two")],
    ids=["lease", "instance", "name"],
)
def test_a_heartbeat_without_the_current_lease_counts_for_nobody(view, agent, instance, stranger):
    view.apply(snapshot(agent(), instances=[instance()]))

    assert not view.roster.beat(stranger)
    assert view.status(ORDER).running == 0
    assert view.roster.heard() == frozenset()


def test_a_reload_keeps_heartbeats_and_outcomes(view, agent, instance, clock):
    view.apply(snapshot(agent(), instances=[instance()]))
    view.roster.beat(beat(running=3))
    view.record_outcome(ORDER, QUERY, succeeded=False)
    clock.now += 4.0

    view.apply(snapshot(agent(digest="e"), instances=[instance(age_s=2.0)], version=2))

    assert view.version == 2
    assert view.status(ORDER).running == 3
    assert view.age_s(view.instances(ORDER)[0]) == 4.0
    assert view.success(ORDER, QUERY) < 0.8


def test_a_reload_without_an_agent_forgets_its_outcomes(view, agent):
    view.apply(snapshot(agent()))
    view.record_outcome(ORDER, QUERY, succeeded=False)

    view.apply(snapshot(version=2))
    view.apply(snapshot(agent(), version=3))

    assert view.success(ORDER, QUERY) == 0.8


def test_a_new_lease_replaces_the_older_one_of_the_same_name_only(view, agent, instance):
    view.put(agent(), instance("one", lease="older"), (), 1)
    view.put(agent(), instance("two"), (), 1)
    view.put(agent(), instance("one", lease="newer"), (), 1)

    leases = [one.instance.lease_id for one in view.instances(ORDER)]
    assert leases == [LeaseId("newer"), LeaseId("lease-two")]


def test_a_registration_shows_at_once(view, agent, instance, capability):
    view.put(agent("order", capability("a")), instance(), [contract("a", ORDER)], 1)
    view.put(agent("order", capability("b")), instance(), [contract("b", ORDER)], 2)

    assert view.group(Capability("a")) == ()
    assert set(view.contracts) == {"b"}
    assert view.snapshot().version == 2
    assert [row.name for row in view.snapshot().instances] == ["one"]


def test_a_removed_agent_is_gone_with_all_that_was_known_of_it(view, agent, instance):
    view.apply(snapshot(agent(), agent("faq"), instances=[instance()], contracts=[contract("order.query")]))
    view.add_open(ORDER, 5)
    view.record_outcome(ORDER, QUERY, succeeded=False)

    view.forget(ORDER)

    assert view.agent(ORDER) is None
    assert [one.agent_id for one in view.group(QUERY)] == ["faq"]
    assert view.contracts[QUERY].declared_by == {FAQ}
    assert view.instances(ORDER) == []
    assert view.success(ORDER, QUERY) == 0.8


def test_running_is_the_larger_of_reported_and_open(view, agent, instance):
    view.apply(snapshot(agent(), instances=[instance()]))
    view.roster.beat(beat(running=3))

    view.set_open({ORDER: 4})
    assert view.status(ORDER).running == 4
    view.add_open(ORDER, 2)
    assert view.status(ORDER).running == 6
    view.add_open(ORDER, -100)
    assert view.status(ORDER).running == 3
    view.add_open(ORDER, 5)
    view.begin_count()
    view.set_open({})
    assert view.status(ORDER).running == 3


def test_what_was_opened_while_the_ledger_was_asked_counts_on_top(view, agent, instance):
    view.apply(snapshot(agent(), instances=[instance()]))
    view.begin_count()
    view.add_open(ORDER, 2)
    view.add_open(ORDER, -1)

    view.set_open({ORDER: 3})

    assert view.total_open() == 5
    view.begin_count()
    view.set_open({ORDER: 4})
    assert view.total_open() == 4


def test_what_is_open_in_all_is_the_sum_of_what_is_open_at_each(view, agent):
    view.apply(snapshot(agent(), agent("faq")))
    view.set_open({ORDER: 4, FAQ: 1})
    view.add_open(ORDER, 2)
    assert view.total_open() == 7

    view.add_open(FAQ, -3)
    assert view.total_open() == 6

    view.forget(ORDER)
    assert view.total_open() == 0


def test_outcomes_count_from_where_the_ledger_left_off(view, agent):
    view.apply(snapshot(agent()))
    view.seed_outcomes([Counted(ORDER, QUERY, succeeded=0.0, failed=20.0)])

    assert view.success(ORDER, QUERY) == pytest.approx(0.4)
    view.record_outcome(ORDER, QUERY, succeeded=True)
    assert view.success(ORDER, QUERY) == pytest.approx(17 / 41)


def test_outcomes_of_an_agent_that_is_not_registered_are_not_kept(view, agent):
    view.record_outcome(ORDER, QUERY, succeeded=False)
    view.apply(snapshot(agent()))

    assert view.success(ORDER, QUERY) == 0.8


def test_signs_of_life_are_remembered_until_recorded(view, agent, instance):
    view.apply(snapshot(agent(), instances=[instance("one"), instance("two")]))
    view.roster.beat(beat("one"))
    first = view.roster.heard()
    view.roster.beat(beat("two"))

    view.roster.recorded(first)

    assert first == {InstanceId("order-one")}
    assert view.roster.heard() == {InstanceId("order-two")}


def test_dropping_or_forgetting_the_unknown_changes_nothing(view, agent, instance):
    view.apply(snapshot(agent(), instances=[instance()]))

    view.roster.drop(FAQ, LeaseId("lease"))
    view.roster.drop(ORDER, LeaseId("lease"))
    view.roster.forget(FAQ)

    assert len(view.instances(ORDER)) == 1


def test_an_agent_is_idle_once_its_instances_are_settled_and_say_that_they_rest(
    view, agent, instance, clock, rules
):
    view.apply(snapshot(agent(), instances=[instance()]))
    view.roster.beat(beat(running=0))
    at_first = view.idle_agents()

    clock.now += 2 * rules.heartbeat_s
    view.roster.beat(beat(running=0))
    settled = view.idle_agents()
    view.roster.beat(beat(running=1))

    assert (at_first, settled, view.idle_agents()) == ((), (ORDER,), ())
