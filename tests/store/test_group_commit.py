import asyncio
from collections.abc import Sequence

import pytest

from dispatcher.clock import SystemClock
from dispatcher.errors import OverloadedError, UnavailableError
from dispatcher.store.failure import ConflictError
from dispatcher.store.group_commit import GroupCommit, GroupRules

LIMIT_S = 5
NO_WINDOW = GroupRules(window_s=0)


class Apply:
    """A transaction that answers each write with itself, and waits or fails as told."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.started = asyncio.Event()
        self.may_commit = asyncio.Event()
        self.may_commit.set()
        self.conflicts = 0

    async def __call__(self, writes: Sequence[str]) -> list[str]:
        self.groups.append(list(writes))
        self.started.set()
        await self.may_commit.wait()
        if self.conflicts:
            self.conflicts -= 1
            raise ConflictError("in the way")
        if "outage" in writes:
            raise UnavailableError("no database")
        if "bad" in writes:
            raise ValueError("bad")
        return list(writes)


class SetClock(SystemClock):
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at


class NotedClock(SystemClock):
    """Notes each wait instead of waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await super().sleep(0)


def commits(apply: Apply, rules: GroupRules = NO_WINDOW) -> GroupCommit[str, str]:
    return GroupCommit(apply, rules=rules, clock=SystemClock())


async def put_while_busy(
    commit: GroupCommit[str, str], apply: Apply, group: asyncio.TaskGroup, writes: Sequence[str]
) -> list[asyncio.Task[str | Exception]]:
    """Put `writes` while "first" is being committed, so that they form one group."""

    async def outcome(write: str) -> str | Exception:
        try:
            return await commit.put(write)
        except (ValueError, UnavailableError) as error:
            return error

    apply.may_commit.clear()
    first = group.create_task(outcome("first"))
    await apply.started.wait()
    tasks = [group.create_task(outcome(write)) for write in writes]
    await SystemClock().sleep(0)
    apply.may_commit.set()
    await first
    return tasks


async def test_nothing_is_answered_before_its_commit():
    apply = Apply()
    apply.may_commit.clear()
    commit = commits(apply)

    async with asyncio.timeout(LIMIT_S), commit.running(), asyncio.TaskGroup() as group:
        task = group.create_task(commit.put("a"))
        await apply.started.wait()
        answered_early = task.done()
        apply.may_commit.set()

    assert not answered_early
    assert task.result() == "a"


async def test_what_arrives_during_a_commit_forms_the_next_group_in_order_of_arrival():
    apply = Apply()
    commit = commits(apply)

    async with asyncio.timeout(LIMIT_S), commit.running(), asyncio.TaskGroup() as group:
        await put_while_busy(commit, apply, group, ["a", "b", "c"])

    assert apply.groups == [["first"], ["a", "b", "c"]]


async def test_a_group_is_never_larger_than_the_rules_allow():
    apply = Apply()
    commit = commits(apply, GroupRules(window_s=0, largest=2))

    async with asyncio.timeout(LIMIT_S), commit.running(), asyncio.TaskGroup() as group:
        await put_while_busy(commit, apply, group, ["a", "b", "c"])

    assert apply.groups == [["first"], ["a", "b"], ["c"]]


async def test_a_failing_group_is_split_until_the_bad_write_fails_alone():
    apply = Apply()
    commit = commits(apply)

    async with asyncio.timeout(LIMIT_S), commit.running(), asyncio.TaskGroup() as group:
        tasks = await put_while_busy(commit, apply, group, ["a", "b", "bad", "c", "d"])

    outcomes = [task.result() for task in tasks]
    assert [o for o in outcomes if isinstance(o, str)] == ["a", "b", "c", "d"]
    assert isinstance(outcomes[2], ValueError)
    assert ["bad"] in apply.groups


async def test_a_conflict_is_tried_again_as_a_whole():
    apply = Apply()
    apply.conflicts = 2
    commit = commits(apply, GroupRules(tries=3, pause_s=0))

    async with asyncio.timeout(LIMIT_S), commit.running():
        answer = await commit.put("a")

    assert answer == "a"
    assert apply.groups == [["a"]] * 3


async def test_a_conflict_that_does_not_end_is_given_up_after_the_last_try():
    apply = Apply()
    apply.conflicts = 3
    commit = commits(apply, GroupRules(tries=3, pause_s=0))

    async with asyncio.timeout(LIMIT_S), commit.running():
        with pytest.raises(UnavailableError):
            await commit.put("a")

    assert len(apply.groups) == 3


async def test_an_outage_fails_the_whole_group_without_splitting_it():
    apply = Apply()
    commit = commits(apply)

    async with asyncio.timeout(LIMIT_S), commit.running(), asyncio.TaskGroup() as group:
        tasks = await put_while_busy(commit, apply, group, ["a", "outage"])

    assert all(isinstance(task.result(), UnavailableError) for task in tasks)
    assert apply.groups == [["first"], ["a", "outage"]]


async def test_a_full_queue_refuses_offers_and_lets_puts_wait_for_room():
    apply = Apply()
    apply.may_commit.clear()
    commit = commits(apply, GroupRules(capacity=1, window_s=0))

    async with asyncio.timeout(LIMIT_S), commit.running(), asyncio.TaskGroup() as group:
        group.create_task(commit.put("first"))
        await apply.started.wait()
        with pytest.raises(OverloadedError):
            await commit.offer("refused")
        waiting = group.create_task(commit.put("waited"))
        apply.may_commit.set()

    assert waiting.result() == "waited"
    assert apply.groups == [["first"], ["waited"]]


async def test_leaving_commits_what_is_queued_and_refuses_what_comes_later():
    apply = Apply()
    apply.may_commit.clear()
    commit = commits(apply)

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        async with commit.running():
            queued = [group.create_task(commit.put(write)) for write in ("first", "second")]
            await apply.started.wait()
            apply.may_commit.set()
        with pytest.raises(UnavailableError):
            await commit.put("late")

    assert [task.result() for task in queued] == ["first", "second"]


async def test_a_caller_cancelled_before_its_group_began_has_written_nothing():
    apply = Apply()
    apply.may_commit.clear()
    commit = commits(apply)

    async with asyncio.timeout(LIMIT_S), commit.running(), asyncio.TaskGroup() as group:
        group.create_task(commit.put("first"))
        await apply.started.wait()
        cancelled = group.create_task(commit.put("cancelled"))
        await SystemClock().sleep(0)
        cancelled.cancel()
        await SystemClock().sleep(0)
        apply.may_commit.set()

    assert apply.groups == [["first"]]


async def test_only_a_group_that_follows_company_waits_for_more():
    apply = Apply()
    clock = NotedClock()
    commit: GroupCommit[str, str] = GroupCommit(apply, rules=GroupRules(window_s=0.002), clock=clock)

    async with asyncio.timeout(LIMIT_S), commit.running():
        await commit.put("alone")
        alone = list(clock.waits)
        async with asyncio.TaskGroup() as group:
            await put_while_busy(commit, apply, group, ["a", "b"])
        before = list(clock.waits)
        await commit.put("after company")

    assert (alone, before, clock.waits) == ([], [], [0.002])


async def test_a_cancelled_writer_leaves_nobody_without_an_answer():
    apply = Apply()
    apply.may_commit.clear()
    commit = commits(apply)
    ready = asyncio.Event()

    async def run_for_ever() -> None:
        async with commit.running():
            ready.set()
            await asyncio.Event().wait()

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        owner = group.create_task(run_for_ever())
        await ready.wait()
        waiting = group.create_task(refusal_of(commit, "a"))
        await apply.started.wait()
        owner.cancel()
        await SystemClock().sleep(0)
        owner.cancel()

    assert isinstance(waiting.result(), UnavailableError)


async def refusal_of(commit: GroupCommit[str, str], write: str) -> UnavailableError | None:
    try:
        await commit.put(write)
    except UnavailableError as error:
        return error
    return None


async def test_behind_a_group_that_is_stuck_offers_are_refused_at_once_and_puts_wait():
    apply = Apply()
    apply.may_commit.clear()
    clock = SetClock()
    commit: GroupCommit[str, str] = GroupCommit(apply, rules=GroupRules(window_s=0, stuck_s=3), clock=clock)

    async with asyncio.timeout(LIMIT_S), commit.running(), asyncio.TaskGroup() as group:
        group.create_task(commit.put("first"))
        await apply.started.wait()
        clock.at = 2.9
        early = group.create_task(commit.offer("early"))
        await SystemClock().sleep(0)
        clock.at = 3.0
        with pytest.raises(UnavailableError):
            await commit.offer("late")
        waiting = group.create_task(commit.put("result"))
        await SystemClock().sleep(0)
        apply.may_commit.set()

    assert (early.result(), waiting.result()) == ("early", "result")
