"""What a handler sees of its task."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dispatcher.protocol.frames import TaskFrame
from dispatcher.sdk.flag import Flag


def _unheard(fraction: float | None, note: str | None) -> None:
    """Progress of a task that nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """The task as the handler needs it: words, entities, who asks, and how much time is left.

    `idempotency_key` is the same on every attempt: pass it on to whatever the handler calls.
    `language` is `zh` or `en`. `data` is what the caller sent as context.
    """

    request_id: str
    task_id: str
    attempt: int
    idempotency_key: str
    capability: str
    text: str
    entities: tuple[Mapping[str, Any], ...] = ()
    user_id: str | None = None
    session_id: str | None = None
    language: str = "en"
    data: Mapping[str, Any] = field(default_factory=dict)
    time_left: Callable[[], float] = field(default=lambda: 30.0, repr=False)
    """Seconds until the handler is given up on; the moment it is called."""
    cancelled: Flag = field(default_factory=Flag, repr=False, compare=False)
    """Set when the handler should stop: the task was cancelled, or its time is up."""
    report: Callable[[float | None, str | None], None] = field(default=_unheard, repr=False, compare=False)
    """Where `progress` goes."""

    @property
    def is_cancelled(self) -> bool:
        """Whether to stop; a handler that blocks should look from time to time."""
        return self.cancelled.is_set()

    def progress(self, fraction: float | None = None, note: str | None = None) -> None:
        """Say how far it is: `fraction` in [0, 1], `note` of at most 500 characters.

        From any thread, as often as you like: at most two a second are sent, the last one wins. Best effort.
        """
        self.report(fraction, note)

    @property
    def is_chinese(self) -> bool:
        """Whether to answer in Chinese."""
        return self.language.startswith("zh")

    def entity(self, kind: str) -> object:
        """The value of the first entity of that kind, None where the text names none."""
        return next((e.get("value") for e in self.entities if e.get("kind") == kind), None)


def view_of(
    task: TaskFrame,
    time_left: Callable[[], float],
    report: Callable[[float | None, str | None], None] = _unheard,
) -> TaskView:
    """The handler's view of a task frame."""
    return TaskView(
        request_id=task.request_id,
        task_id=task.task_id,
        attempt=task.attempt,
        idempotency_key=task.idempotency_key,
        capability=task.capability,
        text=task.payload.text,
        entities=tuple(task.payload.entities),
        user_id=task.context.user_id,
        session_id=task.context.session_id,
        language=task.context.language or "en",
        data=task.context.data,
        time_left=time_left,
        report=report,
    )
