"""Agents, instances, leases and capability contracts in SQL."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, RowMapping, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.identifiers import AgentId, Capability, InstanceId, LeaseId
from dispatcher.protocol.declaration import Declaration
from dispatcher.registry.agent import Agent, InboxKind, Instance
from dispatcher.registry.repository import Basis, CapabilityContract, RegistrySnapshot
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.states import padded
from dispatcher.store.tables import agents, capability_contracts, instances, leases, registry_version

_BY_AGENT = select(agents).order_by(agents.c.agent_id)
_BY_CAPABILITY = select(capability_contracts).order_by(capability_contracts.c.capability)

_LEASED = (
    select(instances, leases.c.lease_id, (now_ms() - leases.c.seen_ms).label("seen_age_ms"))
    .join(leases, leases.c.instance_id == instances.c.instance_id)
    .order_by(instances.c.agent_id, instances.c.name)
)

_LEASES_OF = select(leases.c.lease_id).join(instances, leases.c.instance_id == instances.c.instance_id)


class SqlAgents:
    """Implements `registry.repository.AgentRepository`.

    Registrations and removals lock the row with the registry's version first, so that they happen
    one after the other over all replicas.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> RegistrySnapshot:
        """See `AgentRepository.load`."""
        async with self._database.reading() as connection:
            version = (await connection.execute(select(registry_version.c.version))).scalar_one()
            agent_rows = (await connection.execute(_BY_AGENT)).mappings().all()
            instance_rows = (await connection.execute(_LEASED)).mappings().all()
            contract_rows = (await connection.execute(_BY_CAPABILITY)).mappings().all()
        registered = tuple(map(_to_agent, agent_rows))
        return RegistrySnapshot(
            version=version,
            agents=registered,
            instances=tuple(map(_to_instance, instance_rows)),
            contracts=tuple(_to_contract(row, registered) for row in contract_rows),
        )

    async def version(self) -> int:
        """See `AgentRepository.version`."""
        async with self._database.reading() as connection:
            version: int = (await connection.execute(select(registry_version.c.version))).scalar_one()
        return version

    async def instances(self, agent_id: AgentId | None = None) -> tuple[Instance, ...]:
        """See `AgentRepository.instances`."""
        query = _LEASED if agent_id is None else _LEASED.where(instances.c.agent_id == agent_id)
        async with self._database.reading() as connection:
            return tuple(map(_to_instance, (await connection.execute(query)).mappings()))

    async def save(
        self, agent: Agent, instance: Instance, contracts: Sequence[CapabilityContract], basis: Basis
    ) -> int | None:
        """See `AgentRepository.save`."""
        async with self._database.writing() as connection:
            version = await _lock_version(connection)
            held = await connection.execute(_LEASES_OF.where(instances.c.agent_id == agent.agent_id))
            if (version, frozenset(held.scalars())) != (basis.version, basis.leases):
                return None
            if basis.silent and not await _end_silent(connection, basis):
                return None
            if await _save_agent(connection, agent):
                version = await _raise_version(connection, version)
            for contract in sorted(contracts, key=lambda contract: contract.capability):
                await _save_contract(connection, contract)
            await _replace_instance(connection, instance)
        return version

    async def touch(self, instances: Sequence[InstanceId]) -> None:
        """See `AgentRepository.touch`."""
        if not instances:
            return
        held = leases.c.instance_id.in_(padded(instances))
        async with self._database.writing() as connection:
            # Locked in key order: two replicas may touch the same instances.
            ordered = (
                select(leases.c.instance_id).where(held).order_by(leases.c.instance_id).with_for_update()
            )
            await connection.execute(ordered)
            await connection.execute(update(leases).where(held).values(seen_ms=now_ms()))

    async def set_draining(self, agent_id: AgentId, lease_id: LeaseId) -> bool:
        """See `AgentRepository.set_draining`."""
        async with self._database.writing() as connection:
            changed = await connection.execute(
                update(instances).where(*_holds(agent_id, lease_id)).values(draining=True)
            )
        return changed.rowcount > 0

    async def remove_instance(self, agent_id: AgentId, lease_id: LeaseId) -> bool:
        """See `AgentRepository.remove_instance`."""
        async with self._database.writing() as connection:
            removed = await connection.execute(delete(instances).where(*_holds(agent_id, lease_id)))
        return removed.rowcount > 0

    async def remove_agent(self, agent_id: AgentId) -> bool:
        """See `AgentRepository.remove_agent`."""
        async with self._database.writing() as connection:
            version = await _lock_version(connection)
            removed = await connection.execute(delete(agents).where(agents.c.agent_id == agent_id))
            if not removed.rowcount:
                return False
            await _forget_unused_contracts(connection)
            await _raise_version(connection, version)
        return True


async def _lock_version(connection: AsyncConnection) -> int:
    found = await connection.execute(select(registry_version.c.version).with_for_update())
    version: int = found.scalar_one()
    return version


async def _raise_version(connection: AsyncConnection, version: int) -> int:
    await connection.execute(update(registry_version).values(version=version + 1))
    return version + 1


async def _save_agent(connection: AsyncConnection, agent: Agent) -> bool:
    """Insert or replace the agent's row; False where its digest is the stored one."""
    values = {
        "digest": agent.digest,
        "environment": agent.environment,
        "declaration": agent.declaration.to_json(),
        "changed_ms": now_ms(),
    }
    this = agents.c.agent_id == agent.agent_id
    digest = (await connection.execute(select(agents.c.digest).where(this))).scalar_one_or_none()
    if digest is None:
        added = {"agent_id": agent.agent_id, "registered_ms": now_ms()}
        await connection.execute(insert(agents).values(values | added))
    elif digest != agent.digest:
        await connection.execute(update(agents).where(this).values(values))
    return digest != agent.digest


async def _save_contract(connection: AsyncConnection, contract: CapabilityContract) -> None:
    values = {
        "input_schema": contract.input_schema,
        "output_schema": contract.output_schema,
        "changed_ms": now_ms(),
    }
    this = capability_contracts.c.capability == contract.capability
    changed = await connection.execute(update(capability_contracts).where(this).values(values))
    if not changed.rowcount:
        await connection.execute(
            insert(capability_contracts).values(values | {"capability": contract.capability})
        )


async def _replace_instance(connection: AsyncConnection, instance: Instance) -> None:
    older = delete(instances).where(
        instances.c.agent_id == instance.agent_id, instances.c.name == instance.name
    )
    await connection.execute(older)
    await connection.execute(
        insert(instances).values(
            agent_id=instance.agent_id,
            name=instance.name,
            instance_id=instance.instance_id,
            inbox=instance.inbox,
            inbox_id=instance.inbox_id,
            draining=instance.draining,
            started_ms=now_ms(),
        )
    )
    await connection.execute(
        insert(leases).values(
            instance_id=instance.instance_id,
            lease_id=instance.lease_id,
            granted_ms=now_ms(),
            seen_ms=now_ms(),
        )
    )


async def _end_silent(connection: AsyncConnection, basis: Basis) -> bool:
    """End the leases that were silent all the time; False, and nothing, if one of them was heard."""
    # Locked in key order, as by `touch`: who is touched first is heard, who comes later has no lease.
    silent = (
        select(leases.c.instance_id, (now_ms() - leases.c.seen_ms).label("age_ms"))
        .where(leases.c.lease_id.in_(padded(sorted(basis.silent))))
        .order_by(leases.c.instance_id)
        .with_for_update()
    )
    found = (await connection.execute(silent)).all()
    if any(age_ms < basis.silent_s * 1000 for _, age_ms in found):
        return False
    ended = instances.c.instance_id.in_(padded([instance_id for instance_id, _ in found]))
    await connection.execute(delete(instances).where(ended))
    return True


async def _forget_unused_contracts(connection: AsyncConnection) -> None:
    remaining = map(_to_agent, (await connection.execute(_BY_AGENT)).mappings())
    declared = {capability.name for agent in remaining for capability in agent.declaration.capabilities}
    unused = capability_contracts.c.capability.not_in(sorted(declared))
    await connection.execute(delete(capability_contracts).where(unused))


def _holds(agent_id: AgentId, lease_id: LeaseId) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    holder = select(leases.c.instance_id).where(leases.c.lease_id == lease_id).scalar_subquery()
    return instances.c.agent_id == agent_id, instances.c.instance_id == holder


def _to_agent(row: RowMapping) -> Agent:
    return Agent(
        agent_id=row["agent_id"],
        declaration=Declaration.model_validate(row["declaration"]),
        digest=row["digest"],
        environment=row["environment"],
    )


def _to_instance(row: RowMapping) -> Instance:
    return Instance(
        agent_id=row["agent_id"],
        name=row["name"],
        instance_id=row["instance_id"],
        lease_id=row["lease_id"],
        inbox=InboxKind(row["inbox"]),
        inbox_id=row["inbox_id"],
        draining=row["draining"],
        seen_age_s=max(row["seen_age_ms"], 0) / 1000,
    )


def _to_contract(row: RowMapping, registered: Sequence[Agent]) -> CapabilityContract:
    capability = Capability(row["capability"])
    return CapabilityContract(
        capability=capability,
        input_schema=row["input_schema"],
        output_schema=row["output_schema"],
        declared_by=frozenset(a.agent_id for a in registered if a.capability(capability) is not None),
    )
