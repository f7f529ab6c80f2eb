"""Where registry frames come in that did not come over HTTP; refusals become frames, never exceptions."""

import logging
from collections.abc import Awaitable, Callable
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from dispatcher.errors import DispatcherError, RegistrationError
from dispatcher.identifiers import AgentId, LeaseId
from dispatcher.protocol.frames import (
    AcknowledgedFrame,
    DrainFrame,
    HeartbeatFrame,
    RefusedFrame,
    RegisterFrame,
    RegistryReply,
    RegistryRequest,
)
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.registry.registrar import Registrar

_log = logging.getLogger(__name__)

MAX_NAMED_FIELDS = 10


class RegistryEntry:
    """Reads frames, asks the registrar, and encodes its reply.

    `authorize` says whether a register frame's key belongs to its agent. Drain, leave and
    heartbeat frames prove themselves by the lease.
    """

    def __init__(
        self, *, registrar: Registrar, authorize: Callable[[RegisterFrame], Awaitable[bool]]
    ) -> None:
        self._registrar = registrar
        self._authorize = authorize
        self._requests: TypeAdapter[RegistryRequest] = TypeAdapter(
            Annotated[RegistryRequest, Field(discriminator="type")]
        )

    async def handle(self, body: bytes) -> bytes:
        """The encoded reply to an encoded registry request; never raises for what it holds."""
        reply = await self._reply(body)
        return reply.model_dump_json().encode()

    def on_heartbeat(self, body: bytes) -> None:
        """Take in an encoded heartbeat; an unreadable one is counted as not heard."""
        try:
            self._registrar.heartbeat(HeartbeatFrame.model_validate_json(body))
        except ValidationError:
            _log.warning("heartbeat.unreadable", extra={"bytes": len(body)})

    async def _reply(self, body: bytes) -> RegistryReply:
        if len(body) > MAX_FRAME_BYTES:
            return RefusedFrame(code="unreadable", message=f"a frame has at most {MAX_FRAME_BYTES} bytes")
        try:
            return await self._carry_out(self._requests.validate_json(body))
        except ValidationError as error:
            return RefusedFrame(
                code="unreadable", message="not a readable registry frame", fields=_fields(error)
            )
        except RegistrationError as error:
            return RefusedFrame(code=error.error_code, message=error.message, fields=list(error.fields))
        except DispatcherError as error:
            return RefusedFrame(code=error.error_code, message=error.message)

    async def _carry_out(self, frame: RegistryRequest) -> RegistryReply:
        if isinstance(frame, RegisterFrame):
            if not await self._authorize(frame):
                return RefusedFrame(code="invalid_key", message="the key is not one of this agent")
            return await self._registrar.register(frame)
        agent_id, lease_id = AgentId(frame.agent_id), LeaseId(frame.lease_id)
        if isinstance(frame, HeartbeatFrame):
            await self._registrar.heartbeat_checked(frame)
        elif isinstance(frame, DrainFrame):
            await self._registrar.drain(agent_id, lease_id)
        else:
            await self._registrar.leave(agent_id, lease_id)
        return AcknowledgedFrame()


def _fields(error: ValidationError) -> list[str]:
    """Which fields are wrong, without their values; the frame's type leads each location."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return [".".join(str(part) for part in detail["loc"][1:]) for detail in details[:MAX_NAMED_FIELDS]]
