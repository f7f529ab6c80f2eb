"""Which attempt a frame tells of: all that is needed of a task to answer it, now or after a restart."""

from dataclasses import dataclass

from pydantic import TypeAdapter

from dispatcher.protocol.frames import TaskFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What every frame from agent to dispatcher carries of its attempt, and what an inbox keeps of it."""

    request_id: str
    task_id: str
    attempt: int
    token: str
    capability: str

    def encode(self) -> bytes:
        """The bytes an inbox stores."""
        return _adapter.dump_json(self)

    @classmethod
    def decode(cls, stored: bytes) -> "Envelope":
        """What `encode` wrote; raises pydantic's ValidationError for anything else."""
        return _adapter.validate_json(stored)

    def fields(self) -> dict[str, object]:
        """What a result or signal frame takes over."""
        return {
            "request_id": self.request_id,
            "task_id": self.task_id,
            "attempt": self.attempt,
            "token": self.token,
        }


_adapter: TypeAdapter[Envelope] = TypeAdapter(Envelope)


def envelope_of(task: TaskFrame) -> Envelope:
    """The envelope for answers to this frame."""
    return Envelope(
        request_id=task.request_id,
        task_id=task.task_id,
        attempt=task.attempt,
        token=task.token,
        capability=task.capability,
    )
