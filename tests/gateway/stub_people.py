"""Hand-written parts with people."""

from collections.abc import Mapping, Sequence

from dispatcher.dispatch.lifecycle.handoff import Handoff
from dispatcher.dispatch.lifecycle.request import RequestState
from dispatcher.errors import RequestError
from dispatcher.identifiers import CallerId, RequestId, TaskId
from dispatcher.records import replace

REQUEST = "01930000-0000-7000-8000-000000000001"


class StubPeople:
    """One part that waits, and `others`; remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[bool, int, TaskId | None]] = []
        self.others = 0
        self.handoff = Handoff(
            task_id=TaskId(f"{REQUEST}.0"),
            request_id=RequestId(REQUEST),
            caller=CallerId("alice"),
            text="sing a song",
            language="en",
            environment="production",
            handed_ms=5,
        )

    async def list(self, *, answered: bool, limit: int, after: TaskId | None = None) -> Sequence[Handoff]:
        self.asked.append((answered, limit, after))
        return [self.handoff] * (1 + self.others)

    async def of(self, state: RequestState) -> Mapping[TaskId, Handoff]:
        return {task.task_id: self.handoff for task in state.tasks}

    async def answer(self, task_id: TaskId, answer: str, by: str) -> Handoff:
        if task_id != self.handoff.task_id:
            raise RequestError("Nothing of this id was handed over.", code="not_found")
        if self.handoff.answer not in {None, answer}:
            raise RequestError("It was answered by root.", code="already_answered")
        self.handoff = replace(self.handoff, answer=answer, answered_by=by, answered_ms=7)
        return self.handoff
