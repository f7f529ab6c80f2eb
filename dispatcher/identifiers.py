"""Names for the things that cross rooms, so that the type checker tells them apart.

Identifiers made here are UUID version 7 (RFC 9562): time-ordered, 36 characters.
"""

import hashlib
import json
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


def caller_scope(caller: CallerId) -> str:
    """How keys by `callers_key` begin for this caller, and for nobody else."""
    return f"{_digest(caller)[:32]}."


def callers_key(caller: CallerId, capability: Capability, key: str, message: str) -> str:
    """The key of a task whose capability and request's idempotency key its caller chose.

    The caller can tell it before any gateway has the request: a task that reaches an agent past
    the dispatcher is the same task to the agent's inbox (I2).
    """
    return caller_scope(caller) + _digest(capability, key, message)[:40]


def _digest(*texts: str) -> str:
    """A list in JSON can be read in one way only, so that no two lists have one digest."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()
