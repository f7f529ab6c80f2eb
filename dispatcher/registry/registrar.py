"""Registrations, heartbeats and departures: keeps the stored registry and the live view in step.

Changes of one process are made one after the other, under one lock, and followed under another: one
change of routing takes in all that came meanwhile. Another replica may write between a check and the
write that follows: then nothing is written, and the registration is checked again. What is stored can
be routed to: its texts can be read, and the agent's queue exists before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

from dispatcher.errors import ConfigurationError, DeliveryError, RegistrationError, UnavailableError
from dispatcher.identifiers import AgentId, Capability, LeaseId, new_id
from dispatcher.protocol.frames import HeartbeatFrame, RegisteredFrame, RegisterFrame
from dispatcher.registry.admission import Admission, AdmissionRules, admit
from dispatcher.registry.agent import Agent, Instance
from dispatcher.registry.declaration import warnings
from dispatcher.registry.description import AgentDescription, describe_agent
from dispatcher.registry.repository import AgentRepository, Basis, CapabilityContract, RegistrySnapshot
from dispatcher.registry.view import LiveView

_log = logging.getLogger(__name__)

STORE_TRIES = 20
"""How often a registration that others overtook is checked again."""


async def _trust(_endpoint: str, _client: str | None) -> None:
    """For a dispatcher that calls no endpoints."""


async def _accept(_agent: Agent) -> None:
    """For a dispatcher that routes by no texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What follows from a change. A registration is answered only after all of it."""

    on_change: Callable[[RegistrySnapshot], Awaitable[None]]
    """A declaration changed; called with one snapshot at a time, and again if it failed."""
    prepare: Callable[[AgentId, str], Awaitable[None]]
    """What the agent's declared channel needs, a queue say, has to exist.

    Idempotent; called before the registration is stored.
    """
    announce: Callable[[], Awaitable[None]]
    """The other replicas should refresh."""
    examine: Callable[[Agent], Awaitable[None]] = _accept
    """Whether routing can read what is declared; raises RegistrationError if not.

    Called before the registration is stored: what is stored has to be followed.
    """
    reach: Callable[[str, str | None], Awaitable[None]] = _trust
    """Call an endpoint that this client registers; raises DeliveryError with the reason if it can't be."""


class Registrar:
    """The registry of one replica. Every method raises UnavailableError without its database."""

    def __init__(
        self,
        *,
        repository: AgentRepository,
        view: LiveView,
        rules: AdmissionRules,
        effects: Effects,
    ) -> None:
        self._repository = repository
        self._view = view
        self._admission = rules
        self._effects = effects
        self._lock = asyncio.Lock()
        self._following = asyncio.Lock()
        self._followed: int | None = None

    @property
    def contracts(self) -> Mapping[Capability, CapabilityContract]:
        """The schemas of every capability that somebody declares."""
        return self._view.contracts

    async def start(self) -> None:
        """Load what is registered; routing knows it when this returns."""
        async with self._lock:
            self._view.apply(await self._repository.load())
        await self._follow()

    async def register(self, frame: RegisterFrame, *, client: str | None = None) -> RegisteredFrame:
        """Give an instance a lease, and fence an older one of the same instance name.

        An unchanged declaration changes nothing but the lease. `client` is the address of the other
        host that it came from; None where it came from this one or nobody can tell.

        Raises:
            RegistrationError: A rule was broken; nothing of the registration stays.
            UnavailableError: There is no queue for the agent, or its texts can't be read now; nothing
                stays. Also where routing could not follow: then it does so later, as `refresh` does.
        """
        async with self._lock:
            checked, _ = await self._admit(frame, client)
        # Unlocked, for all may take their time; a queue whose agent is then refused harms nobody.
        await self._reach(frame.declaration.endpoint, client)
        await self._effects.examine(checked.agent)
        await self._prepare(AgentId(frame.agent_id), frame.declaration.channel)
        async with self._lock:
            admission = await self._store(frame, client)
        # First, so that the others follow at the same time.
        await self._effects.announce()
        await self._follow()
        _log.info("agent.registered", extra=_facts(admission.agent.agent_id, instance=frame.instance_name))
        return RegisteredFrame(
            agent_id=frame.agent_id,
            instance_id=frame.instance_id,
            lease_id=admission.instance.lease_id,
            heartbeat_ms=round(self._admission.liveness.heartbeat_s * 1000),
            offline_after_ms=round(self._admission.liveness.offline_after_s * 1000),
            declaration_digest=admission.agent.digest,
            warnings=warnings(frame.declaration),
        )

    def heartbeat(self, frame: HeartbeatFrame) -> None:
        """Take in a heartbeat that fanned out to every replica.

        One with a lease not known here says nothing: it may be a new lease, which the next refresh
        brings, or an old one. `heartbeat_checked` can tell.
        """
        if not self._view.roster.beat(frame):
            _log.debug("heartbeat.unknown_lease", extra=_facts(AgentId(frame.agent_id)))

    async def heartbeat_checked(self, frame: HeartbeatFrame) -> None:
        """Take in a heartbeat whose sender waits for the answer; the stored lease decides.

        Raises:
            RegistrationError: `lease_superseded` or `unknown_agent`; register again.
        """
        row = await self._leased(frame)
        if row.seen_age_s >= self._admission.liveness.suspect_after_s:
            # A registration may be counting on its silence; only one of the two is stored first.
            await self._repository.touch([row.instance_id])
            await self._leased(frame)
        if not self._view.roster.beat(frame):
            await self.refresh()
            self.heartbeat(frame)

    async def _leased(self, frame: HeartbeatFrame) -> Instance:
        """The stored instance that holds the frame's lease."""
        agent_id, lease = AgentId(frame.agent_id), (frame.instance_id, frame.lease_id)
        for row in await self._repository.instances(agent_id):
            if (row.instance_id, row.lease_id) == lease:
                return row
        raise self._no_lease(agent_id)

    async def drain(self, agent_id: AgentId, lease_id: LeaseId) -> None:
        """Give that instance no new work.

        Raises:
            RegistrationError: `lease_superseded` or `unknown_agent`.
        """
        async with self._lock:
            if not await self._repository.set_draining(agent_id, lease_id):
                raise self._no_lease(agent_id)
            self._view.roster.replace(agent_id, await self._repository.instances(agent_id))
        _log.info("agent.draining", extra=_facts(agent_id))
        await self._effects.announce()

    async def leave(self, agent_id: AgentId, lease_id: LeaseId) -> None:
        """End that instance's lease; the agent stays registered.

        Raises:
            RegistrationError: `lease_superseded` or `unknown_agent`.
        """
        async with self._lock:
            if not await self._repository.remove_instance(agent_id, lease_id):
                raise self._no_lease(agent_id)
            self._view.roster.drop(agent_id, lease_id)
        _log.info("agent.left", extra=_facts(agent_id))
        await self._effects.announce()

    async def remove(self, agent_id: AgentId) -> None:
        """Remove an agent with all its instances and leases.

        Raises:
            RegistrationError: `unknown_agent`.
        """
        async with self._lock:
            if not await self._repository.remove_agent(agent_id):
                raise RegistrationError("no agent of that id is registered", code="unknown_agent")
            self._view.forget(agent_id)
            await self._catch_up()
        await self._effects.announce()
        await self._follow()
        _log.info("agent.removed", extra=_facts(agent_id))

    async def refresh(self) -> None:
        """Learn what other replicas changed: declarations if the version moved, instances always.

        To be called every second and when another replica announces a change.
        """
        async with self._lock:
            await self._catch_up()
            self._view.roster.replace_all(await self._repository.instances())
        await self._follow()

    async def record_signs_of_life(self) -> None:
        """Store that the instances heard of since the last call are alive; one statement for all."""
        heard = self._view.roster.heard()
        if heard:
            await self._repository.touch(sorted(heard))
            self._view.roster.recorded(heard)

    async def clear_dead(self, after_s: float) -> None:
        """End the leases of instances that were silent for `after_s`; their agents stay registered."""
        async with self._lock:
            for row in self._view.roster.aged(await self._repository.instances()):
                if row.seen_age_s > after_s:
                    await self._repository.remove_instance(row.agent_id, row.lease_id)
                    self._view.roster.drop(row.agent_id, row.lease_id)

    def describe(self) -> list[AgentDescription]:
        """Every agent, by agent id."""
        return [describe_agent(self._view, agent) for agent in self._view.agents()]

    def describe_one(self, agent_id: AgentId) -> AgentDescription | None:
        """One agent, None where it is not registered."""
        agent = self._view.agent(agent_id)
        return None if agent is None else describe_agent(self._view, agent)

    async def _reach(self, endpoint: str | None, client: str | None) -> None:
        if endpoint is None:
            return
        try:
            await self._effects.reach(endpoint, client)
        except DeliveryError as error:
            raise RegistrationError(error.message, code=error.error_code, fields=("endpoint",)) from error

    async def _prepare(self, agent_id: AgentId, channel: str) -> None:
        try:
            await self._effects.prepare(agent_id, channel)
        except ConfigurationError as error:
            raise RegistrationError(error.message, code="queue_mismatch") from error

    async def _admit(self, frame: RegisterFrame, client: str | None) -> tuple[Admission, Basis]:
        """Check every rule against what is stored now."""
        await self._catch_up()
        agent_id = AgentId(frame.agent_id)
        rows = self._view.roster.aged(await self._repository.instances(agent_id))
        admission = admit(
            frame,
            lease_id=LeaseId(new_id()),
            others=(*rows, *self._foreign_instances(agent_id)),
            contracts=self._view.contracts,
            rules=self._admission,
            client=client,
        )
        basis = Basis(
            version=self._view.version,
            leases=frozenset(row.lease_id for row in rows),
            silent=admission.ended,
            silent_s=self._admission.liveness.offline_after_s,
        )
        return admission, basis

    async def _store(self, frame: RegisterFrame, client: str | None) -> Admission:
        """Store what was checked; whoever was overtaken by another registration is checked again."""
        for _ in range(STORE_TRIES):
            admission, basis = await self._admit(frame, client)
            agent, instance = admission.agent, admission.instance
            known = self._view.agent(agent.agent_id)
            contracts = admission.contracts if known is None or known.digest != agent.digest else ()
            version = await self._repository.save(agent, instance, contracts, basis)
            if version is not None:
                for ended in admission.ended:
                    self._view.roster.drop(agent.agent_id, ended)
                self._view.put(agent, instance, contracts, version)
                return admission
        raise UnavailableError("other registrations keep coming first; register again")

    def _foreign_instances(self, agent_id: AgentId) -> Iterator[Instance]:
        return (row for row in self._view.roster.rows() if row.agent_id != agent_id)

    async def _catch_up(self) -> None:
        if await self._repository.version() != self._view.version:
            self._view.apply(await self._repository.load())
            _log.info("registry.reloaded", extra={"registry_version": self._view.version})

    async def _follow(self) -> None:
        """Return once the effects know what is in the view now, or something later.

        Outside the lock of changes: those that come while others are followed are followed together.
        """
        async with self._following:
            # Unequal, not older: the stored version goes back where a database is restored.
            if self._followed != self._view.version:
                snapshot = self._view.snapshot()
                await self._effects.on_change(snapshot)
                self._followed = snapshot.version

    def _no_lease(self, agent_id: AgentId) -> RegistrationError:
        if self._view.agent(agent_id) is None:
            return RegistrationError("no agent of that id is registered", code="unknown_agent")
        return RegistrationError("that lease is not the current one", code="lease_superseded")


def _facts(agent_id: AgentId, **more: str) -> dict[str, str]:
    return {"agent_id": agent_id, **more}
