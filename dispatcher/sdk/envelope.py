"""Which attempt a frame tells of: all that is needed of a task to answer it, now or after a restart."""

import msgspec

from dispatcher.protocol.frames import VERSION, TaskFrame
from dispatcher.records import Struct


class Envelope(Struct, frozen=True, kw_only=True):
    """What every frame from agent to dispatcher carries of its attempt, and what an inbox keeps of it."""

    request_id: str
    task_id: str
    attempt: int
    token: str
    capability: str

    def encode(self) -> bytes:
        """The bytes an inbox stores."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, stored: bytes) -> "Envelope":
        """What `encode` wrote; raises msgspec's DecodeError for anything else."""
        return msgspec.json.decode(stored, type=cls)

    def fields(self) -> dict[str, object]:
        """What a result or signal frame takes over."""
        return {
            "request_id": self.request_id,
            "task_id": self.task_id,
            "attempt": self.attempt,
            "token": self.token,
        }

    def head(self, instance_id: str) -> bytes:
        """A result frame in JSON, as far as it is not the outcome's."""
        head = _ResultHead(
            request_id=self.request_id,
            task_id=self.task_id,
            attempt=self.attempt,
            token=self.token,
            instance_id=instance_id,
        )
        return msgspec.json.encode(head)


class _ResultHead(Struct, frozen=True, kw_only=True):
    v: int = VERSION
    type: str = "result"
    request_id: str
    task_id: str
    attempt: int
    token: str
    instance_id: str


def envelope_of(task: TaskFrame) -> Envelope:
    """The envelope for answers to this frame."""
    return Envelope(
        request_id=task.request_id,
        task_id=task.task_id,
        attempt=task.attempt,
        token=task.token,
        capability=task.capability,
    )
