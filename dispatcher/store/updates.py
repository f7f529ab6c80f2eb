"""The transaction that runs rules on a group of requests and stores what they changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dispatcher.dispatch.ledger import Change, Decide, Step
from dispatcher.dispatch.request import Attempt, AttemptStatus, RequestState
from dispatcher.identifiers import RequestId
from dispatcher.store.changes import ChangeSet
from dispatcher.store.column import read_now
from dispatcher.store.engine import Database
from dispatcher.store.states import load_states


@dataclass(frozen=True, slots=True)
class Ruling:
    """One rule to run on one request."""

    request_id: RequestId
    decide: Decide


async def update_group(database: Database, rulings: Sequence[Ruling]) -> list[Change | None]:
    """One answer per rule, committed; None where there is no such request.

    Rules run in order of arrival, those of one request each on the state the one before left.
    The time is read after the locks are held, so it never lies before a change it follows.
    """
    answers: list[Change | None] = []
    async with database.writing() as connection:
        stored = await load_states(connection, (ruling.request_id for ruling in rulings), locked=True)
        now = await read_now(connection)
        current = dict(stored)
        changes = ChangeSet(now)
        for ruling in rulings:
            before = current.get(ruling.request_id)
            if before is None:
                answers.append(None)
                continue
            step = ruling.decide(before, now)
            changes.add_records(step)
            current[ruling.request_id] = step.state
            answers.append(Change(before=before, after=step.state, now_ms=now))
        for request_id, state in current.items():
            changes.add(stored[request_id], state)
        await changes.write(connection)
    return answers


def publication(published: Attempt) -> Decide:
    """The rule that turns a DUE attempt into a PUBLISHED one whose time runs from now."""

    def decide(state: RequestState, now: int) -> Step:
        deadline = next((t.deadline_ms for t in state.tasks if t.task_id == published.task_id), None)
        lapse = now + published.timeout_ms

        def publish(attempt: Attempt) -> Attempt:
            if (attempt.task_id, attempt.number) != (published.task_id, published.number):
                return attempt
            if attempt.status is not AttemptStatus.DUE:
                return attempt
            return replace(
                attempt,
                status=AttemptStatus.PUBLISHED,
                published_ms=now,
                lapse_ms=lapse if deadline is None else min(lapse, deadline),
            )

        return Step(state=replace(state, attempts=tuple(map(publish, state.attempts))))

    return decide
