"""Which status may follow which: the whole life of a request, its tasks and its attempts.

Every rule changes a state through `Draft`, which refuses what the tables do not allow, so that
an illegal change fails its own transaction instead of reaching the ledger.
"""

from collections.abc import Mapping, Sequence

from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    AttemptStatus,
    DecisionRecord,
    HandoffRecord,
    PartialRecord,
    Request,
    RequestState,
    RequestStatus,
    ResultRecord,
    Task,
    TaskStatus,
)
from dispatcher.dispatch.lifecycle.session import Question, SessionChange
from dispatcher.errors import DispatcherError
from dispatcher.identifiers import TaskId
from dispatcher.intents.plan import Intent
from dispatcher.records import replace

TASK_TRANSITIONS: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.WAITING: frozenset(TaskStatus) - {TaskStatus.COMPLETED, TaskStatus.WAITING},
    TaskStatus.OPEN: frozenset(TaskStatus)
    - {TaskStatus.WAITING, TaskStatus.SKIPPED, TaskStatus.OUT_OF_SCOPE}
    - {TaskStatus.CLARIFY, TaskStatus.HANDED_OFF},
    **{status: frozenset[TaskStatus]() for status in TaskStatus if status.is_terminal},
}
"""OPEN may follow OPEN (another attempt); nothing follows a terminal status (I3)."""

ATTEMPT_TRANSITIONS: Mapping[AttemptStatus, frozenset[AttemptStatus]] = {
    AttemptStatus.DUE: frozenset(AttemptStatus),
    AttemptStatus.PUBLISHED: frozenset(AttemptStatus),
    AttemptStatus.LAPSED: frozenset(
        {
            AttemptStatus.SUCCEEDED,
            AttemptStatus.FAILED,
            AttemptStatus.NOT_STARTED,
            AttemptStatus.PUBLISHED,
        }
    ),
    AttemptStatus.NOT_STARTED: frozenset({AttemptStatus.SUCCEEDED, AttemptStatus.FAILED}),
    AttemptStatus.FAILED: frozenset({AttemptStatus.SUCCEEDED}),
    AttemptStatus.SUCCEEDED: frozenset(),
    AttemptStatus.ABANDONED: frozenset(),
}
"""A result may come before the confirmation of its publish, and after its attempt was given up.

PUBLISHED goes back to DUE where the broker lost it, and stays as it is when the agent renews its
lease, or renews it after all: LAPSED may become PUBLISHED. DUE may follow DUE (a claim given back).
"""


class IllegalTransitionError(DispatcherError):
    """A rule wanted a change that the tables forbid: a fault in the rule, not in its input."""

    code = "illegal_transition"


class Draft:
    """A request's state while one rule works on it; local to that rule."""

    def __init__(self, state: RequestState, now_ms: int) -> None:
        self.now_ms = now_ms
        self._state = state
        self._request = state.request
        self._tasks = list(state.tasks)
        self._attempts = {(a.task_id, a.number): a for a in state.attempts}
        self._results: list[ResultRecord] = []
        self._decisions: list[DecisionRecord] = []
        self._partials: list[PartialRecord] = []
        self._handoffs: tuple[HandoffRecord, ...] = ()
        self._context_update: dict[str, object] = {}
        self._closed: tuple[Question, ...] = ()
        self._asked: tuple[Question, ...] = ()
        self._topic: str | None = None

    @property
    def request(self) -> Request:
        """The request as it stands in this draft."""
        return self._request

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks by position, as they stand in this draft."""
        return tuple(self._tasks)

    @property
    def intents(self) -> tuple[Intent, ...]:
        """All intents by position."""
        return self._state.intents

    def intent_of(self, task: Task) -> Intent:
        """The intent that the task gives out."""
        return self._state.intents[task.position]

    def task(self, task_id: TaskId) -> Task | None:
        """The task, None where the request has no such task."""
        return next((t for t in self._tasks if t.task_id == task_id), None)

    def task_of(self, attempt: Attempt) -> Task:
        """The task that the attempt belongs to."""
        return next(t for t in self._tasks if t.task_id == attempt.task_id)

    def attempt(self, task_id: TaskId, number: int) -> Attempt | None:
        """The attempt, None where there is no such attempt."""
        return self._attempts.get((task_id, number))

    def attempts_of(self, task_id: TaskId) -> tuple[Attempt, ...]:
        """The task's attempts, oldest first."""
        return tuple([a for a in self._attempts.values() if a.task_id == task_id])

    def put_task(self, task: Task) -> None:
        """Replace a task; raises IllegalTransitionError where its status may not follow the old one.

        Its `finished_ms` becomes the draft's time where the status is terminal, else None: a task
        that comes with it already is copied once less.
        """
        before = self._tasks[task.position]
        if task.status not in TASK_TRANSITIONS[before.status]:
            raise IllegalTransitionError(f"task {task.task_id!r}: {before.status} -> {task.status}")
        finished = self.now_ms if task.status.is_terminal else None
        same = task.finished_ms == finished
        self._tasks[task.position] = task if same else replace(task, finished_ms=finished)

    def put_attempt(self, attempt: Attempt) -> None:
        """Add an attempt, or replace it; raises IllegalTransitionError like `put_task`."""
        key = (attempt.task_id, attempt.number)
        before = self._attempts.get(key)
        if before and attempt.status not in ATTEMPT_TRANSITIONS[before.status]:
            raise IllegalTransitionError(f"attempt {key!r}: {before.status} -> {attempt.status}")
        finished = None if attempt.status.is_open else self.now_ms
        same = attempt.finished_ms == finished
        self._attempts[key] = attempt if same else replace(attempt, finished_ms=finished)

    def end_attempts(self, task_id: TaskId, status: AttemptStatus) -> None:
        """End every open attempt of a task with the same status."""
        for attempt in self.attempts_of(task_id):
            if attempt.status.is_open:
                self.put_attempt(replace(attempt, status=status))

    def put_result(self, record: ResultRecord) -> None:
        """Keep what became of a received result."""
        self._results.append(record)

    def put_decision(self, record: DecisionRecord) -> None:
        """Keep a decision that this rule used."""
        self._decisions.append(record)

    def put_partial(self, record: PartialRecord) -> None:
        """Keep a piece of a result on its way."""
        self._partials.append(record)

    def hand_off(self, task: Task, described: str | None) -> None:
        """Replace a task by one that a person does, and have that person told; see `HandoffRecord`."""
        self.put_task(task)
        record = HandoffRecord(request_id=task.request_id, task_id=task.task_id, described=described)
        self._handoffs = (*self._handoffs, record)

    def update_context(self, update: Mapping[str, object]) -> None:
        """Change the session's context; where there is no session, nothing is remembered."""
        self._context_update.update(update)

    def close(self, questions: Sequence[Question]) -> None:
        """Ask these no more: they were answered, or a message that saw them went on with something else."""
        self._closed = tuple(questions)

    def ask(self, questions: Sequence[Question]) -> None:
        """Ask this too; what is asked last comes first."""
        self._asked = (*questions, *self._asked)

    def keep_topic(self, topic: str | None) -> None:
        """Have the session's next messages find this topic; None names none."""
        self._topic = topic

    def allow_until(self, deadline_ms: int) -> None:
        """Move the request's deadline back to `deadline_ms` where it is earlier."""
        later_ms = max(self._request.deadline_ms, deadline_ms)
        self._request = replace(self._request, deadline_ms=later_ms)

    def finish(self, status: RequestStatus, answer: str) -> None:
        """End the request with its one answer (I1)."""
        if self._request.status is not RequestStatus.OPEN:
            raise IllegalTransitionError(f"request {self._request.request_id!r} ends twice")
        self._request = replace(self._request, status=status, answer=answer, finished_ms=self.now_ms)

    def step(self) -> Step:
        """Everything changed, ready to be written."""
        attempts = list(self._attempts.values())
        if len(attempts) > 1:
            attempts.sort(key=lambda a: (self._position(a), a.number))
        state = RequestState(
            request=self._request,
            intents=self._state.intents,
            tasks=tuple(self._tasks),
            attempts=tuple(attempts),
        )
        return Step(
            state=state,
            results=tuple(self._results),
            decisions=tuple(self._decisions),
            partials=tuple(self._partials),
            handoffs=self._handoffs,
            session=self._session_change(),
        )

    def _session_change(self) -> SessionChange | None:
        request = self._request
        is_changed = self._context_update or self._closed or self._asked or self._topic is not None
        if request.session_id is None or not is_changed:
            return None
        return SessionChange(
            caller=request.caller,
            session_id=request.session_id,
            user_id=request.user_id,
            seen_version=request.session_version or 0,
            update=self._context_update,
            closed=self._closed,
            asked=self._asked,
            topic=self._topic,
        )

    def _position(self, attempt: Attempt) -> int:
        task = self.task(attempt.task_id)
        return task.position if task else -1
