"""Giving a task to an agent: the first attempt and the ones after it (I7)."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dispatcher.dispatch.request import Attempt, AttemptStatus, DecisionRecord, Request, Task, TaskStatus
from dispatcher.dispatch.transition import Draft
from dispatcher.identifiers import AgentId, ReplicaId
from dispatcher.intents.plan import Intent
from dispatcher.routing.decision import Decision, Outcome
from dispatcher.routing.record import decision_document


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRules:
    """How often and how long a task is tried. Times in milliseconds.

    At most `max_attempts` per task, whoever causes them. An idempotent task's attempt is given up
    after `attempt_timeout_ms`, any other keeps its whole remaining time. A further attempt with
    the same agent waits a random `delay_min_ms` to `delay_max_ms` (requirement D4).
    """

    max_attempts: int = 3
    attempt_timeout_ms: int = 15_000
    delay_min_ms: int = 100
    delay_max_ms: int = 800
    claim_ms: int = 10_000
    request_timeout_ms: int = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A decision, and what the chosen agent declared about running the capability."""

    decision: Decision
    idempotent: bool = False
    timeout_ms: int = 30_000


Choose = Callable[[Request, Intent, Task, frozenset[AgentId]], Assignment]
"""Request, intent, its task with all inputs, and the agents already tried -> who takes it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigner:
    """Opens attempts. Everything that is not a rule comes in as a part, so that rules stay repeatable."""

    rules: AttemptRules
    choose: Choose
    has_room: Callable[[AgentId], bool]
    """Whether this replica may publish to the agent at once; else the attempt waits in the ledger."""
    new_token: Callable[[], str]
    chance: random.Random
    replica: ReplicaId

    def open(self, draft: Draft, task: Task, inputs: Mapping[str, object]) -> None:
        """Give a task that has all its inputs its first attempt, or end it where nobody can take it."""
        intent = draft.intent_of(task)
        assignment = self.choose(draft.request, intent, replace(task, inputs=inputs), frozenset())
        decision = assignment.decision
        _keep(draft, task, decision, number=1)
        task = replace(task, inputs=inputs, score=decision.score, opened_ms=draft.now_ms, ranking=None)
        if decision.outcome is Outcome.OUT_OF_SCOPE:
            draft.put_task(replace(task, status=TaskStatus.OUT_OF_SCOPE, error_code="out_of_scope"))
            return
        if decision.agent_id is None:
            _end_unavailable(draft, task, decision)
            return
        deadline = min(draft.now_ms + assignment.timeout_ms, draft.request.deadline_ms)
        opened = replace(
            task,
            idempotent=assignment.idempotent,
            timeout_ms=assignment.timeout_ms,
            deadline_ms=deadline,
        )
        self._attempt(draft, opened, decision.agent_id, delay_ms=0)

    def try_again(self, draft: Draft, task: Task, *, surely_not_started: bool) -> bool:
        """Make another attempt if the rules allow one; False, with nothing changed, if they don't."""
        attempts = draft.attempts_of(task.task_id)
        harmless = surely_not_started or task.idempotent
        if not harmless or not has_attempts_left(task, len(attempts), draft.now_ms, self.rules):
            return False
        intent = draft.intent_of(task)
        tried = frozenset(a.agent_id for a in attempts)
        decision = self.choose(draft.request, intent, task, tried).decision
        delay_ms = 0
        if decision.agent_id is None:
            decision = self.choose(draft.request, intent, task, frozenset()).decision
            delay_ms = self.chance.randint(self.rules.delay_min_ms, self.rules.delay_max_ms)
        if decision.agent_id is None or draft.now_ms + delay_ms >= (task.deadline_ms or 0):
            return False
        _keep(draft, task, decision, number=len(attempts) + 1)
        again = replace(task, score=decision.score)
        self._attempt(draft, again, decision.agent_id, delay_ms)
        return True

    def _attempt(self, draft: Draft, task: Task, agent_id: AgentId, delay_ms: int) -> None:
        remaining = (task.deadline_ms or draft.now_ms) - draft.now_ms - delay_ms
        mine = delay_ms == 0 and self.has_room(agent_id)
        attempt = Attempt(
            task_id=task.task_id,
            request_id=task.request_id,
            number=len(draft.attempts_of(task.task_id)) + 1,
            agent_id=agent_id,
            token=self.new_token(),
            status=AttemptStatus.DUE,
            not_before_ms=draft.now_ms + delay_ms,
            timeout_ms=min(remaining, self.rules.attempt_timeout_ms) if task.idempotent else remaining,
            claimed_by=self.replica if mine else None,
            claimed_until_ms=draft.now_ms + self.rules.claim_ms if mine else None,
        )
        draft.put_attempt(attempt)
        draft.put_task(replace(task, status=TaskStatus.OPEN, agent_id=agent_id))


def has_attempts_left(task: Task, attempts: int, now_ms: int, rules: AttemptRules) -> bool:
    """Whether the task was tried few enough times and still has time (I7)."""
    in_time = task.deadline_ms is not None and now_ms < task.deadline_ms
    return attempts < rules.max_attempts and in_time


def _keep(draft: Draft, task: Task, decision: Decision, *, number: int) -> None:
    draft.put_decision(
        DecisionRecord(
            request_id=task.request_id,
            position=task.position,
            number=number,
            document=decision_document(decision),
        )
    )


def _end_unavailable(draft: Draft, task: Task, decision: Decision) -> None:
    draft.put_task(
        replace(
            task,
            status=TaskStatus.UNAVAILABLE,
            error_code="unavailable",
            reason=decision.reason,
            retry_after_s=decision.retry_after_s,
        )
    )
