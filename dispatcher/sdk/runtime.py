"""An agent at work over a link: in this process or over RabbitMQ, it makes no difference here.

Three things go on at once: heartbeats, consumption, and the handlers, which run elsewhere
(`handler_thread`) so that none of them can hold up the other two.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import DispatcherError, first_error
from dispatcher.identifiers import InstanceId, new_id
from dispatcher.protocol.link import Link
from dispatcher.sdk.agent import Agent, ChannelKind, checked_name
from dispatcher.sdk.handler_thread import HandlerThread
from dispatcher.sdk.inbox import Inbox
from dispatcher.sdk.intake import Intake
from dispatcher.sdk.leftovers import Leftovers
from dispatcher.sdk.load_window import LoadWindow
from dispatcher.sdk.membership import InstanceIdentity, Membership
from dispatcher.sdk.parts import IntakeRules, Parts
from dispatcher.sdk.pulse import Pulse

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    """How one instance runs. Times are seconds.

    `instance_name` is stable over restarts: registering fences an older process of that name.
    `environment` overrides the agent's own. On a stop, work in hand has
    `drain_s` to end and its results to be published; what is left then is given back.
    """

    instance_name: str = "main"
    instance_id: str = field(default_factory=new_id)
    key: str | None = field(default=None, repr=False)
    channel: ChannelKind = "in-process"
    environment: str | None = None
    drain_s: float = 40.0
    reconnect_s: float = 1.0
    intake: IntakeRules = field(default_factory=IntakeRules)


class Runtime:
    """Registers an agent, takes its tasks and drains when told to stop. Runs once."""

    def __init__(
        self,
        agent: Agent,
        link: Link,
        inbox: Inbox,
        *,
        options: RuntimeOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        options = options or RuntimeOptions()
        clock = clock or SystemClock()
        self._agent, self._link, self._options, self._clock = agent, link, options, clock
        self._handlers = HandlerThread(agent.max_load)
        window = LoadWindow()
        self._membership = Membership(
            _identity(agent, inbox, options),
            link,
            clock,
            window=window,
            running=lambda: self._handlers.running,
        )
        parts = Parts(
            agent=agent,
            owner=options.instance_id,
            link=link,
            inbox=inbox,
            handlers=self._handlers,
            clock=clock,
            rules=options.intake,
            fence=self._membership.fence,
        )
        self._intake = Intake(parts, window)
        self._leftovers = Leftovers(parts)
        self._pulse = Pulse(clock)
        self.ready = asyncio.Event()
        """Set once the agent is registered and consumes."""

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then drain, leave and return.

        Raises `RegistrationError` when the dispatcher refuses the agent, `ConfigurationError`
        when its declaration breaks a limit. A dispatcher that is not there is waited for.
        """
        try:
            async with self._handlers, asyncio.TaskGroup() as group:
                life = group.create_task(self._live())
                await stop.wait()
                await self._drain()
                life.cancel()
        except ExceptionGroup as group_error:
            raise first_error(group_error) from group_error
        await self._membership.leave()

    async def _live(self) -> None:
        """Consume while there is a lease; work in hand goes on without one."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pulse.run())
            group.create_task(self._obey())
            await self._membership.join()
            group.create_task(self._leftovers.run())
            while True:
                consumption = group.create_task(self._consume(group))
                await self._membership.stay()
                consumption.cancel()
                await asyncio.wait({consumption})
                await self._membership.join()

    async def _consume(self, group: asyncio.TaskGroup) -> None:
        """Take deliveries, and again after every lost connection; work in hand goes on meanwhile."""
        while True:
            try:
                async with self._link.deliveries(self._agent.agent_id, self._agent.max_load) as deliveries:
                    self.ready.set()
                    async for delivery in deliveries:
                        since = self._pulse.since(delivery.since)
                        group.create_task(self._intake.handle(delivery, since))
            except DispatcherError as error:
                _log.warning("consumption.interrupted", extra={"reason": error.error_code})
            await self._clock.sleep(self._options.reconnect_s)

    async def _obey(self) -> None:
        """Carry out cancellations, with or without a lease."""
        while True:
            try:
                async with self._link.controls(self._agent.agent_id) as frames:
                    async for frame in frames:
                        self._intake.cancel(frame)
            except DispatcherError as error:
                _log.warning("controls.interrupted", extra={"reason": error.error_code})
            await self._clock.sleep(self._options.reconnect_s)

    async def _drain(self) -> None:
        self._intake.drain()
        _log.info("drain.started", extra={"agent_id": self._agent.agent_id, "in_hand": self._intake.in_hand})
        try:
            async with asyncio.timeout(self._options.drain_s):
                await self._membership.drain()
                await self._intake.idle()
        except TimeoutError:
            _log.warning("drain.unfinished", extra={"in_hand": self._intake.in_hand})


@asynccontextmanager
async def serving(runtime: Runtime) -> AsyncIterator[Runtime]:
    """Run beside the body, from the moment it is ready; drains when the body ends.

    A refused registration is raised as `RegistrationError`.
    """
    stop = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(runtime.run(stop))
            try:
                await runtime.ready.wait()
                yield runtime
            finally:
                stop.set()
    except ExceptionGroup as group_error:
        raise first_error(group_error) from group_error


def _identity(agent: Agent, inbox: Inbox, options: RuntimeOptions) -> InstanceIdentity:
    return InstanceIdentity(
        agent_id=agent.agent_id,
        name=checked_name(options.instance_name, "instance name"),
        instance_id=InstanceId(options.instance_id),
        declaration=agent.declaration(channel=options.channel, environment=options.environment),
        inbox=inbox.kind,
        inbox_id=inbox.inbox_id,
        key=options.key,
    )
