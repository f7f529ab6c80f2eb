"""Hand-written dead letters."""

from collections.abc import Sequence

from dispatcher.dispatch.lifecycle.dead_letter import Cause
from dispatcher.dispatch.lifecycle.ledger import DeadEntry, DeadQuery
from dispatcher.dispatch.lifecycle.request import DeadFrame, RequestState, TaskStatus
from dispatcher.dispatch.repeats import DeadLetter
from dispatcher.errors import RequestError
from dispatcher.identifiers import AgentId, CallerId, Capability, RequestId


class StubDeadLetters:
    """One dead task and one dead frame; remembers what it was asked for."""

    def __init__(self, state: RequestState) -> None:
        self.asked: list[tuple[Cause | None, DeadQuery]] = []
        self.retried: list[tuple[str, AgentId | None, str | None]] = []
        self.task = DeadEntry(
            dead_id=state.tasks[0].task_id,
            ended_ms=5,
            age_ms=1,
            error_code="timeout",
            caller=CallerId("alice"),
            request_id=state.request.request_id,
            capability=Capability("order.query"),
            status=TaskStatus.FAILED,
            attempts=1,
        )
        frame = DeadFrame(dead_id="f1", source="results", reason="rejected", size_bytes=4, body="junk")
        self.frame = DeadEntry(dead_id="f1", ended_ms=4, age_ms=2, error_code="rejected", frame=frame)
        self.letters = {
            entry.dead_id: DeadLetter(entry=entry, state=known)
            for entry, known in ((self.task, state), (self.frame, None))
        }

    async def list(self, cause: Cause | None, wanted: DeadQuery) -> Sequence[DeadEntry]:
        self.asked.append((cause, wanted))
        return [self.task, self.frame]

    async def show(self, dead_id: str) -> DeadLetter:
        if dead_id not in self.letters:
            raise RequestError("There is no dead letter of this id.", code="not_found")
        return self.letters[dead_id]

    async def retry(self, dead_id: str, to: AgentId | None = None, key: str | None = None) -> RequestId:
        if (await self.show(dead_id)).state is None:
            raise RequestError("Nobody knows what this frame belongs to.", code="not_retryable")
        self.retried.append((dead_id, to, key))
        return RequestId("again")
