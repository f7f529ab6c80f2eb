"""Names for the things that cross rooms, so that the type checker tells them apart.

Identifiers made here are UUID version 7 (RFC 9562): time-ordered, 36 characters.
"""

from typing import NewType

from uuid_utils import uuid7

RequestId = NewType("RequestId", str)
TaskId = NewType("TaskId", str)
AgentId = NewType("AgentId", str)
InstanceId = NewType("InstanceId", str)
LeaseId = NewType("LeaseId", str)
CallerId = NewType("CallerId", str)
ReplicaId = NewType("ReplicaId", str)
Capability = NewType("Capability", str)


def new_id() -> str:
    """A fresh UUIDv7: later ones of one process sort after earlier ones."""
    return str(uuid7())


def idempotency_key(request_id: RequestId, position: int) -> str:
    """The key of one intent of a request, the same on every attempt and redelivery (I2)."""
    return f"{request_id}:{position}"
