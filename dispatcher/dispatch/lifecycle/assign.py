"""Giving a task to an agent: the first attempt and the ones after it (I7)."""

import random
from collections.abc import Callable, Mapping
from typing import Protocol

from dispatcher.dispatch.lifecycle.option import DescribedOption
from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    AttemptStatus,
    DecisionRecord,
    Request,
    Task,
    TaskStatus,
)
from dispatcher.dispatch.lifecycle.transition import Draft
from dispatcher.dispatch.lifecycle.unassigned import FINAL, end_unassigned
from dispatcher.identifiers import AgentId, CallerId, ReplicaId
from dispatcher.intents.plan import Intent
from dispatcher.records import Struct, replace
from dispatcher.routing.decision import Decision
from dispatcher.routing.record import decision_document


class AttemptRules(Struct, frozen=True, kw_only=True):
    """How often and how long a task is tried. Times in milliseconds.

    At most `max_attempts` per task, whoever causes them. An idempotent task's attempt is given up
    after `attempt_timeout_ms`, any other keeps its whole remaining time. A further attempt with
    the same agent waits a random `delay_min_ms` to `delay_max_ms` (requirement D4).

    A task is long when its capability declares more than `long_after_ms`: once it started, its
    attempt lives as long as its agent renews the lease within `lease_ms`. With an agent that knows
    no leases it keeps its whole remaining time.
    """

    max_attempts: int = 3
    attempt_timeout_ms: int = 15_000
    delay_min_ms: int = 100
    delay_max_ms: int = 800
    claim_ms: int = 10_000
    request_timeout_ms: int = 120_000
    long_after_ms: int = 60_000
    lease_ms: int = 15_000


class Assignment(Struct, frozen=True, kw_only=True):
    """A decision, and what the chosen agent declared about running the capability.

    `options` are those of the decision, as the person is told of them.
    """

    decision: Decision
    options: tuple[DescribedOption, ...] = ()
    idempotent: bool = False
    timeout_ms: int = 30_000
    leases: bool = False


class Choose(Protocol):
    """Says who takes an intent now."""

    def __call__(
        self,
        request: Request,
        intent: Intent,
        task: Task,
        tried: frozenset[AgentId],
        inputs: Mapping[str, object] | None = None,
    ) -> Assignment:
        """An agent in `tried` is chosen only where no other can be, and of an opened task's capability.

        `inputs` are those of a task that does not have them yet, None stands for the task's own.
        """
        ...


class AgentLoads(Protocol):
    """How full the agents are; the registry's live view."""

    def has_room(self, agent_id: AgentId) -> bool:
        """Whether the agent's live instances take another task at once."""
        ...

    def add_open(self, agent_id: AgentId, delta: int) -> None:
        """Count an attempt as soon as it is decided, so that the next decision of the same batch sees it.

        Counted in vain where the transaction fails or is repeated; the next refresh corrects that.
        """
        ...


class Retries(Protocol):
    """How much may be tried again; one for all rules of a replica."""

    def count_first(self) -> None:
        """A task got its first attempt."""
        ...

    def delay_ms(self, caller: CallerId, agent_id: AgentId, within_ms: int) -> int | None:
        """Reserve one more attempt: after how long it may be made; None where that is `within_ms` or more."""
        ...


class Assigner(Struct, frozen=True, kw_only=True):
    """Opens attempts. Everything that is not a rule comes in as a part, so that rules stay repeatable."""

    rules: AttemptRules
    choose: Choose
    loads: AgentLoads
    retries: Retries
    new_token: Callable[[], str]
    chance: random.Random
    replica: ReplicaId

    def open(self, draft: Draft, task: Task, inputs: Mapping[str, object]) -> None:
        """Give a task that has all its inputs its first attempt, or end it where nobody can take it."""
        assignment = self._decide(draft, task, inputs)
        decision = assignment.decision
        if decision.agent_id is None:
            looked_at = replace(task, inputs=inputs, opened_ms=draft.now_ms)
            end_unassigned(draft, looked_at, decision, assignment.options)
            return
        deadline = min(draft.now_ms + assignment.timeout_ms, draft.request.deadline_ms)
        if self._is_long(assignment):
            deadline = draft.now_ms + assignment.timeout_ms
            draft.allow_until(deadline)
        opened = replace(
            task,
            inputs=inputs,
            opened_ms=draft.now_ms,
            status=TaskStatus.OPEN,
            # With a margin an agent of a near capability may be the one: its own is what it is asked for.
            capability=decision.capability or task.capability,
            agent_id=decision.agent_id,
            score=decision.score,
            ranking=None,
            idempotent=assignment.idempotent,
            timeout_ms=assignment.timeout_ms,
            deadline_ms=deadline,
        )
        self.retries.count_first()
        self._attempt(draft, opened, decision.agent_id, assignment, 0)

    def decide(self, draft: Draft, task: Task) -> Assignment | None:
        """Make and keep a task's first decision; None, and the task is ended, where no agent is for it."""
        assignment = self._decide(draft, task, None)
        if assignment.decision.outcome not in FINAL:
            return assignment
        end_unassigned(draft, task, assignment.decision, assignment.options)
        return None

    def try_again(self, draft: Draft, task: Task, *, surely_not_started: bool) -> bool:
        """Make another attempt if the rules allow one; False, with nothing changed, if they don't.

        `surely_not_started` speaks of the newest attempt; an earlier one may have run all the same.
        """
        attempts = draft.attempts_of(task.task_id)
        harmless = surely_not_started or task.idempotent
        if not harmless or not has_attempts_left(task, len(attempts), draft.now_ms, self.rules):
            return False
        tried = frozenset(a.agent_id for a in attempts)
        assignment = self.choose(draft.request, draft.intent_of(task), task, tried)
        never_ran = surely_not_started and all(a.status is AttemptStatus.NOT_STARTED for a in attempts)
        agent_id = assignment.decision.agent_id
        if agent_id is None or not (never_ran or assignment.idempotent):
            return False
        spread_ms = 0
        if agent_id in tried:
            spread_ms = self.chance.randint(self.rules.delay_min_ms, self.rules.delay_max_ms)
        left_ms = (task.deadline_ms or 0) - draft.now_ms
        if spread_ms >= left_ms:
            return False
        delay_ms = self.retries.delay_ms(draft.request.caller, agent_id, left_ms)
        if delay_ms is None:
            return False
        self._again(draft, task, agent_id, assignment, max(delay_ms, spread_ms))
        return True

    def wait(self, draft: Draft, task: Task, attempt: Attempt) -> bool:
        """Let a task that surely did not start wait for its agent, where nobody can take it now.

        The relay moves it on as soon as another one can (`move`); its deadline ends the wait.
        """
        attempts = draft.attempts_of(task.task_id)
        delay_ms = self.rules.delay_max_ms
        in_time = draft.now_ms + delay_ms < (task.deadline_ms or 0)
        if not in_time or not has_attempts_left(task, len(attempts), draft.now_ms, self.rules):
            return False
        tried = frozenset(a.agent_id for a in attempts)
        assignment = self.choose(draft.request, draft.intent_of(task), task, tried)
        if assignment.decision.agent_id is not None:
            return False  # somebody could: it is the retry budget that said no
        like_before = replace(assignment, timeout_ms=task.timeout_ms, leases=attempt.lease_ms is not None)
        self._attempt(draft, task, attempt.agent_id, like_before, delay_ms)
        return True

    def move(self, draft: Draft, task: Task, attempt: Attempt) -> bool:
        """Replace a due attempt by one at an agent not tried yet; False where there is none.

        One that may have been sent is replaced only where running it twice does no harm (I7).
        """
        sent = attempt.published_ms is not None
        attempts = draft.attempts_of(task.task_id)
        harmless = task.idempotent or not sent
        if not harmless or not has_attempts_left(task, len(attempts), draft.now_ms, self.rules):
            return False
        tried = frozenset(a.agent_id for a in attempts)
        assignment = self.choose(draft.request, draft.intent_of(task), task, tried)
        agent_id = assignment.decision.agent_id
        if agent_id is None or agent_id in tried or (sent and not assignment.idempotent):
            return False
        ended = AttemptStatus.LAPSED if sent else AttemptStatus.NOT_STARTED
        draft.put_attempt(replace(attempt, status=ended, error_code="agent_gone"))
        self._again(draft, task, agent_id, assignment, 0)
        return True

    def _decide(self, draft: Draft, task: Task, inputs: Mapping[str, object] | None) -> Assignment:
        assignment = self.choose(draft.request, draft.intent_of(task), task, frozenset(), inputs)
        _keep(draft, task, assignment.decision, number=1)
        return assignment

    def _again(
        self, draft: Draft, task: Task, agent_id: AgentId, assignment: Assignment, delay_ms: int
    ) -> None:
        decision = assignment.decision
        _keep(draft, task, decision, number=len(draft.attempts_of(task.task_id)) + 1)
        # One agent that must not run it twice makes the whole task so. Its capability stays what an agent
        # was asked for first: another one would be another thing done.
        idempotent = task.idempotent and assignment.idempotent
        again = replace(task, score=decision.score, idempotent=idempotent)
        self._attempt(draft, again, agent_id, assignment, delay_ms)

    def _is_long(self, assignment: Assignment) -> bool:
        return assignment.timeout_ms > self.rules.long_after_ms

    def _attempt(
        self, draft: Draft, task: Task, agent_id: AgentId, assignment: Assignment, delay_ms: int
    ) -> None:
        remaining = (task.deadline_ms or draft.now_ms) - draft.now_ms - delay_ms
        mine = delay_ms == 0 and self.loads.has_room(agent_id)
        is_long = self._is_long(assignment)
        gives_up_early = task.idempotent and (assignment.leases or not is_long)
        attempt = Attempt(
            task_id=task.task_id,
            request_id=task.request_id,
            number=len(draft.attempts_of(task.task_id)) + 1,
            agent_id=agent_id,
            token=self.new_token(),
            status=AttemptStatus.DUE,
            not_before_ms=draft.now_ms + delay_ms,
            timeout_ms=min(remaining, self.rules.attempt_timeout_ms) if gives_up_early else remaining,
            lease_ms=self.rules.lease_ms if is_long and assignment.leases else None,
            claimed_by=self.replica if mine else None,
            claimed_until_ms=draft.now_ms + self.rules.claim_ms if mine else None,
        )
        draft.put_attempt(attempt)
        is_given = task.status is TaskStatus.OPEN and task.agent_id == agent_id
        draft.put_task(task if is_given else replace(task, status=TaskStatus.OPEN, agent_id=agent_id))
        self.loads.add_open(agent_id, +1)


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
