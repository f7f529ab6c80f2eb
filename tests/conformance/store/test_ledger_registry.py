from collections.abc import Sequence
from dataclasses import replace

import pytest

from dispatcher.identifiers import AgentId, Capability, InstanceId, LeaseId, new_id
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import Agent, InboxKind, Instance
from dispatcher.registry.repository import Basis, CapabilityContract
from dispatcher.store.agents import SqlAgents
from dispatcher.store.engine import Database

ORDER = AgentId("order")


def agent_of(agent_id: AgentId = ORDER, *capabilities: str, digest: str = "digest-1") -> Agent:
    declared = [
        CapabilityDeclaration(name=c, descriptions=["查询订单"]) for c in capabilities or ("order.query",)
    ]
    return Agent(
        agent_id=agent_id,
        declaration=Declaration(capabilities=declared),
        digest=digest,
        environment="production",
    )


def instance_of(agent_id: AgentId = ORDER, name: str = "host-1") -> Instance:
    return Instance(
        agent_id=agent_id,
        name=name,
        instance_id=InstanceId(new_id()),
        lease_id=LeaseId(new_id()),
        inbox=InboxKind.POSTGRES,
    )


def contract_of(capability: str, **properties: object) -> CapabilityContract:
    return CapabilityContract(
        capability=Capability(capability), input_schema={"properties": properties}, output_schema={}
    )


async def basis_of(agents: SqlAgents, agent_id: AgentId) -> Basis:
    leases = frozenset(row.lease_id for row in await agents.instances(agent_id))
    return Basis(version=await agents.version(), leases=leases)


async def put(
    agents: SqlAgents, agent: Agent, instance: Instance, contracts: Sequence[CapabilityContract]
) -> int | None:
    return await agents.save(agent, instance, contracts, await basis_of(agents, agent.agent_id))


@pytest.fixture
def agents(database: Database) -> SqlAgents:
    return SqlAgents(database)


async def test_an_empty_registry_has_version_zero(agents: SqlAgents):
    snapshot = await agents.load()

    assert (snapshot.version, snapshot.agents, snapshot.instances, snapshot.contracts) == (0, (), (), ())


async def test_what_is_saved_is_loaded_again(agents: SqlAgents):
    agent, instance = agent_of(), replace(instance_of(), inbox=InboxKind.SQLITE, inbox_id="file-1")
    contract = contract_of("order.query", amount={"type": "number"})

    version = await put(agents, agent, instance, [contract])

    snapshot = await agents.load()
    assert version == snapshot.version == await agents.version() == 1
    assert snapshot.agents == (agent,)
    assert snapshot.contracts == (replace(contract, declared_by=frozenset({ORDER})),)
    (loaded,) = snapshot.instances
    assert replace(loaded, seen_age_s=0.0) == instance
    assert loaded.seen_age_s == pytest.approx(0, abs=5)


async def test_an_unchanged_declaration_does_not_raise_the_version(agents: SqlAgents):
    await put(agents, agent_of(), instance_of(name="host-1"), [])

    version = await put(agents, agent_of(), instance_of(name="host-2"), [])

    assert version == 1
    assert len((await agents.load()).instances) == 2


async def test_a_changed_declaration_replaces_the_old_one(agents: SqlAgents):
    await put(agents, agent_of(), instance_of(), [])
    changed = agent_of(ORDER, "order.query", "order.cancel", digest="digest-2")

    version = await put(agents, changed, instance_of(), [])

    assert version == 2
    assert (await agents.load()).agents == (changed,)


async def test_registering_a_name_again_fences_its_older_lease_and_no_sibling(agents: SqlAgents):
    old, sibling, new = instance_of(), instance_of(name="host-2"), instance_of()
    for instance in (old, sibling, new):
        await put(agents, agent_of(), instance, [])

    assert not await agents.set_draining(ORDER, old.lease_id)
    assert not await agents.remove_instance(ORDER, old.lease_id)
    assert {i.lease_id for i in (await agents.load()).instances} == {sibling.lease_id, new.lease_id}


async def test_instances_are_read_for_one_agent_or_for_all(agents: SqlAgents):
    faq = AgentId("faq")
    order, first, second = instance_of(), instance_of(faq), instance_of(faq, "host-2")
    for instance in (order, first, second):
        await put(agents, agent_of(instance.agent_id), instance, [])

    of_faq = await agents.instances(faq)
    of_all = await agents.instances()

    assert [i.lease_id for i in of_faq] == [first.lease_id, second.lease_id]
    assert [i.lease_id for i in of_all] == [first.lease_id, second.lease_id, order.lease_id]
    assert await agents.instances(AgentId("unknown")) == ()


async def test_contracts_that_are_not_given_are_left_alone(agents: SqlAgents):
    await put(agents, agent_of(), instance_of(), [contract_of("order.query", a=1)])

    await put(agents, agent_of(), instance_of(), [contract_of("order.cancel", b=1)])
    await put(agents, agent_of(), instance_of(), [contract_of("order.cancel", c=1)])

    schemas = {c.capability: c.input_schema["properties"] for c in (await agents.load()).contracts}
    assert schemas == {"order.query": {"a": 1}, "order.cancel": {"c": 1}}


async def test_an_instance_can_drain_and_leave_while_its_agent_stays(agents: SqlAgents):
    instance = instance_of()
    await put(agents, agent_of(), instance, [])

    drained = await agents.set_draining(ORDER, instance.lease_id)
    draining = (await agents.load()).instances[0].draining
    removed = await agents.remove_instance(ORDER, instance.lease_id)

    snapshot = await agents.load()
    assert (drained, draining, removed) == (True, True, True)
    assert (len(snapshot.agents), snapshot.instances) == (1, ())


async def test_a_lease_of_another_agent_gives_no_right(agents: SqlAgents):
    instance = instance_of()
    await put(agents, agent_of(), instance, [])

    assert not await agents.set_draining(AgentId("faq"), instance.lease_id)
    assert not await agents.remove_instance(AgentId("faq"), instance.lease_id)


async def test_signs_of_life_count_for_current_leases_only(agents: SqlAgents):
    instance = instance_of()
    await put(agents, agent_of(), instance, [])

    await agents.touch([instance.instance_id, InstanceId("gone"), InstanceId("long-gone")])
    await agents.touch([])

    (loaded,) = (await agents.load()).instances
    assert loaded.seen_age_s == pytest.approx(0, abs=5)


async def test_removing_an_agent_takes_its_leases_and_the_contracts_nobody_else_declares(agents: SqlAgents):
    faq = AgentId("faq")
    contracts = [contract_of("order.query"), contract_of("faq.ask")]
    await put(agents, agent_of(ORDER, "order.query", "faq.ask"), instance_of(), contracts)
    await put(agents, agent_of(faq, "faq.ask"), instance_of(faq), [])

    removed = await agents.remove_agent(ORDER)

    snapshot = await agents.load()
    assert removed
    assert snapshot.version == 3
    assert [agent.agent_id for agent in snapshot.agents] == [faq]
    assert [instance.agent_id for instance in snapshot.instances] == [faq]
    assert [(str(c.capability), c.declared_by) for c in snapshot.contracts] == [("faq.ask", frozenset({faq}))]


async def test_removing_an_unknown_agent_changes_nothing(agents: SqlAgents):
    assert not await agents.remove_agent(ORDER)
    assert await agents.version() == 0


async def test_leases_that_were_silent_end_with_a_registration(agents: SqlAgents):
    silent, other = instance_of(name="host-1"), instance_of(name="host-2")
    for one in (silent, other):
        await put(agents, agent_of(), one, [])
    newer, basis = instance_of(name="host-3"), await basis_of(agents, ORDER)

    await agents.save(
        agent_of(), newer, [], replace(basis, silent=frozenset({silent.lease_id}), silent_s=0.0)
    )

    assert {row.lease_id for row in await agents.instances()} == {other.lease_id, newer.lease_id}


async def test_a_sign_of_life_since_the_check_keeps_the_lease_and_nothing_is_stored(agents: SqlAgents):
    heard = instance_of(name="host-1")
    await put(agents, agent_of(), heard, [])
    await agents.touch([heard.instance_id])
    basis = replace(await basis_of(agents, ORDER), silent=frozenset({heard.lease_id}), silent_s=45.0)

    assert await agents.save(agent_of(), instance_of(name="host-2"), [], basis) is None
    assert [row.lease_id for row in await agents.instances()] == [heard.lease_id]


async def test_what_was_checked_against_an_older_registry_is_not_stored(agents: SqlAgents):
    before = await basis_of(agents, ORDER)
    holder = instance_of()
    await put(agents, agent_of(), holder, [])
    same_version = Basis(version=await agents.version(), leases=before.leases)
    same_leases = Basis(version=before.version, leases=frozenset({holder.lease_id}))

    late = [
        await agents.save(agent_of(digest="late"), instance_of(), [], basis)
        for basis in (before, same_version, same_leases)
    ]

    assert late == [None, None, None]
    assert (await agents.load()).agents == (agent_of(),)
    assert [row.lease_id for row in await agents.instances()] == [holder.lease_id]
