"""Which tasks and frames are dead letters, and what was done about them."""

import pytest

from dispatcher.dispatch.lifecycle.ledger import DeadQuery, Decide, Step
from dispatcher.dispatch.lifecycle.request import DeadFrame, RequestState, TaskStatus
from dispatcher.identifiers import AgentId, Capability, idempotency_key, new_id
from dispatcher.records import replace
from dispatcher.store.ledger import SqlLedger
from tests.conformance.store.ledger_requests import AGENT, accepted, offer_of


def end_first(status: TaskStatus, code: str, *, after_ms: int = 0) -> Decide:
    def decide(state: RequestState, now: int) -> Step:
        first, *others = state.tasks
        ended = replace(first, status=status, error_code=code, finished_ms=now + after_ms)
        return Step(state=replace(state, tasks=(ended, *others)))

    return decide


async def dead_task(ledger: SqlLedger, code: str = "timeout", *, after_ms: int = 0) -> RequestState:
    state = await accepted(ledger)
    await ledger.update(state.request.request_id, end_first(TaskStatus.FAILED, code, after_ms=after_ms))
    return state


def frame(reason: str = "rejected") -> DeadFrame:
    return DeadFrame(dead_id=new_id(), source="results", reason=reason, size_bytes=3, body="乱\x00码")


async def test_tasks_that_ended_badly_are_dead_newest_first(ledger: SqlLedger):
    first, second = await dead_task(ledger), await dead_task(ledger, after_ms=1000)
    completed = await accepted(ledger)
    await ledger.update(completed.request.request_id, end_first(TaskStatus.COMPLETED, ""))

    found = await ledger.dead(DeadQuery())

    assert [entry.dead_id for entry in found] == [s.tasks[0].task_id for s in (second, first)]
    assert (found[0].error_code, found[0].agent_id, found[0].attempts) == ("timeout", AGENT, 1)
    assert found[0].caller == second.request.caller


async def test_what_was_never_given_out_is_not_dead(ledger: SqlLedger):
    offer = offer_of()

    def without_attempts(now: int) -> Step:
        state = offer.build(now).state
        gone = replace(state.tasks[0], status=TaskStatus.UNAVAILABLE, finished_ms=now)
        return Step(state=replace(state, tasks=(gone, state.tasks[1]), attempts=()))

    await ledger.accept(replace(offer, build=without_attempts))

    assert await ledger.dead(DeadQuery()) == []


async def test_frames_without_a_task_stand_beside_them(ledger: SqlLedger):
    await dead_task(ledger)
    buried = frame()

    await ledger.bury(buried)

    found = {entry.dead_id: entry for entry in await ledger.dead(DeadQuery())}
    assert len(found) == 2
    kept = found[buried.dead_id].frame
    assert kept is not None
    assert (kept.source, kept.body) == ("results", "乱\ufffd码")


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        (DeadQuery(codes=frozenset({"timeout"})), ["timeout"]),
        (DeadQuery(codes=frozenset({"timeout", "rejected"}), excluded=True), ["broken"]),
        (DeadQuery(agent_id=AGENT), ["broken", "timeout"]),
        (DeadQuery(agent_id=AgentId("other")), []),
        (DeadQuery(capability=Capability("order.query")), ["broken", "timeout"]),
        (DeadQuery(limit=1), ["rejected"]),
    ],
)
async def test_they_can_be_chosen(ledger: SqlLedger, query: DeadQuery, codes: list[str]):
    await dead_task(ledger, "timeout", after_ms=-2000)
    await dead_task(ledger, "broken", after_ms=-1000)
    await ledger.bury(frame())

    assert [entry.error_code for entry in await ledger.dead(query)] == codes


async def test_a_task_that_was_done_again_says_as_what(ledger: SqlLedger):
    dead = await dead_task(ledger)
    key = idempotency_key(dead.request.request_id, 0)
    again = offer_of()

    def repeating(now: int) -> Step:
        step = again.build(now)
        first, *others = step.state.tasks
        repeated = replace(first, idempotency_key=key, repeat=1)
        return replace(step, state=replace(step.state, tasks=(repeated, *others)))

    await ledger.accept(replace(again, build=repeating))

    (entry,) = await ledger.dead(DeadQuery(dead_id=dead.tasks[0].task_id))
    assert entry.retried_as == again.request_id
    assert await ledger.dead(DeadQuery(retried=False)) == []
