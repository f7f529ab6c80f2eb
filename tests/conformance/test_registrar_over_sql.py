"""The registrar over the real store: what its rules promise holds across processes and restarts."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from dispatcher.clock import SystemClock
from dispatcher.errors import RegistrationError
from dispatcher.identifiers import AgentId, Capability, LeaseId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.protocol.frames import HeartbeatFrame, RegisteredFrame, RegisterFrame
from dispatcher.registry.access import Role
from dispatcher.registry.access_book import AccessBook
from dispatcher.registry.admission import AdmissionRules
from dispatcher.registry.agent import Liveness, LivenessRules
from dispatcher.registry.api_key import new_key
from dispatcher.registry.registrar import Effects, Registrar
from dispatcher.registry.repository import RegistrySnapshot
from dispatcher.registry.view import LiveView
from dispatcher.store.access import SqlAccess
from dispatcher.store.agents import SqlAgents
from dispatcher.store.engine import Database, open_engine

ORDER, QUERY = AgentId("order"), Capability("order.query")


class Replica:
    """A registrar with its own view, and the snapshots that its routing was given."""

    def __init__(self, database: Database) -> None:
        rules = LivenessRules()
        self.view = LiveView(rules=rules, clock=SystemClock())
        self.snapshots: list[RegistrySnapshot] = []
        self.registrar = Registrar(
            repository=SqlAgents(database),
            view=self.view,
            rules=AdmissionRules(liveness=rules, default_environment="production"),
            effects=Effects(on_change=self._follow, prepare=self._ignore, announce=self._ignore),
        )

    async def _follow(self, snapshot: RegistrySnapshot) -> None:
        self.snapshots.append(snapshot)

    async def _ignore(self, *_: object) -> None: ...


@pytest.fixture
async def database(upgraded_sqlite_url: str) -> AsyncIterator[Database]:
    async with open_engine(upgraded_sqlite_url) as opened:
        yield opened


@pytest.fixture
async def postgres(upgraded_postgres_url: str) -> AsyncIterator[Database]:
    async with open_engine(upgraded_postgres_url) as opened:
        yield opened


def frame(
    agent_id: str = "order",
    *,
    name: str = "one",
    process: str = "first",
    kind: str = "string",
    inbox: str = "",
) -> RegisterFrame:
    declared = CapabilityDeclaration(
        name="order.query",
        descriptions=["Find an order", "查询订单"],
        input_schema={"type": "object", "properties": {"order": {"type": kind}}},
    )
    return RegisterFrame(
        agent_id=agent_id,
        instance_name=name,
        instance_id=f"{agent_id}-{name}-{process}",
        inbox="sqlite",
        inbox_id=f"{agent_id}-{name}-{inbox}",
        declaration=Declaration(capabilities=[declared]),
    )


def beat(lease: RegisteredFrame, running: int = 0) -> HeartbeatFrame:
    return HeartbeatFrame(
        agent_id=lease.agent_id, instance_id=lease.instance_id, lease_id=lease.lease_id, running=running
    )


async def refusal(registrar: Registrar, registration: RegisterFrame) -> tuple[str, tuple[str, ...]]:
    with pytest.raises(RegistrationError) as refused:
        await registrar.register(registration)
    return refused.value.error_code, refused.value.fields


async def play_two_replicas(database: Database) -> None:
    """Register, restart, refuse, drain and remove over two replicas of one database."""
    here, there = Replica(database), Replica(database)
    await here.registrar.start()
    older = await here.registrar.register(frame(process="first"))
    newer = await there.registrar.register(frame(process="second"))
    with pytest.raises(RegistrationError, match="not the current one"):
        await here.registrar.heartbeat_checked(beat(older))
    await here.registrar.heartbeat_checked(beat(newer, running=2))
    await here.registrar.record_signs_of_life()
    assert here.view.status(ORDER).running == 2

    assert await refusal(here.registrar, frame(name="two")) == ("private_inbox", ())
    mismatch = ("incompatible_schema", ("order.query/input/order",))
    assert await refusal(there.registrar, frame("faq", kind="integer")) == mismatch

    await there.registrar.drain(ORDER, LeaseId(newer.lease_id))
    await here.registrar.refresh()
    assert here.view.status(ORDER).draining
    await there.registrar.remove(ORDER)
    await here.registrar.refresh()
    assert here.view.group(QUERY) == ()
    assert [len(snapshot.agents) for snapshot in here.snapshots] == [0, 1, 0]
    await here.registrar.register(frame("faq", kind="integer"))


async def test_two_replicas_share_one_registry_on_sqlite(database: Database) -> None:
    await play_two_replicas(database)


async def test_two_replicas_share_one_registry_on_postgres(postgres: Database) -> None:
    await play_two_replicas(postgres)


async def race_for_one_name(database: Database) -> None:
    """Two processes under one name, with an inbox each, register at two replicas at once, many times."""
    replicas = [Replica(database), Replica(database)]
    for number in range(20):
        rivals = [frame(f"agent-{number}", process=process, inbox=process) for process in ("one", "two")]

        outcomes = await asyncio.gather(
            *(replica.registrar.register(rival) for replica, rival in zip(replicas, rivals, strict=True)),
            return_exceptions=True,
        )

        granted = [outcome for outcome in outcomes if isinstance(outcome, RegisteredFrame)]
        refused = [outcome.error_code for outcome in outcomes if isinstance(outcome, RegistrationError)]
        (stored,) = await SqlAgents(database).instances(AgentId(f"agent-{number}"))
        assert refused == ["private_inbox"]
        assert [lease.lease_id for lease in granted] == [stored.lease_id]


async def test_of_two_processes_that_race_for_one_name_one_gets_it_on_sqlite(database: Database) -> None:
    await race_for_one_name(database)


async def test_of_two_processes_that_race_for_one_name_one_gets_it_on_postgres(postgres: Database) -> None:
    await race_for_one_name(postgres)


async def test_a_restarted_dispatcher_knows_who_is_there_and_encodes_nothing_again(
    database: Database,
) -> None:
    before = Replica(database)
    granted = await before.registrar.register(frame())

    after = Replica(database)
    await after.registrar.start()
    again = await after.registrar.register(frame(process="second"))

    assert after.view.status(ORDER).liveness is Liveness.ALIVE
    assert again.declaration_digest == granted.declaration_digest
    assert len(after.snapshots) == 1
    assert after.snapshots[0].agents == before.snapshots[-1].agents


async def test_keys_and_grants_are_read_from_the_store(database: Database) -> None:
    access = SqlAccess(database)
    book = AccessBook(access, SystemClock(), development=False)
    key, text = new_key(Role.CALLER, "shop")
    await access.add_key(key)
    await book.refresh()
    caller = await book.authenticate(text)
    assert caller is not None
    assert not caller.allows(QUERY)

    await access.set_grants(caller.caller_id, frozenset({QUERY}))
    await book.refresh()
    assert book.grants(caller.caller_id) == frozenset({QUERY})
    await access.revoke_key(key.key_id)
    await book.refresh()

    assert await book.authenticate(text) is None
