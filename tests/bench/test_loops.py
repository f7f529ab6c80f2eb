"""The two ways of giving load."""

import asyncio
import time

from dispatcher.bench.closed_loop import closed_loop
from dispatcher.bench.open_loop import Fates, open_loop


class PatientClock:
    """Implements `clock.Clock`; sleeping only yields."""

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        del seconds
        await asyncio.sleep(0)  # noqa: TID251 - yields only


async def test_a_closed_loop_never_has_more_open_than_callers():
    open_now, most = 0, 0

    async def call() -> bool:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await PatientClock().sleep(0)
        open_now -= 1
        return True

    report = await closed_loop([call] * 3, 0.02)

    assert most == 3
    assert report["completed"] > 3
    assert report["failed"] == 0


async def test_a_closed_loop_counts_failures_apart():
    async def call() -> bool:
        await PatientClock().sleep(0)
        return False

    report = await closed_loop([call], 0.01)

    assert report["completed"] == report["rate"] == report["p50_ms"] == 0
    assert report["failed"] > 0


async def test_an_open_loop_begins_everything_although_nothing_is_answered():
    everything_began = asyncio.Event()
    begun = 0

    async def send() -> str:
        nonlocal begun
        begun += 1
        if begun == 20:
            everything_began.set()
        await everything_began.wait()
        return "completed"

    async with asyncio.timeout(10):
        fates = await open_loop(send, requests=20, rate=1e6, clock=PatientClock())

    assert fates.report()["outcomes"] == {"completed": 20}


async def test_an_open_loop_tells_what_became_of_each():
    outcomes = iter(["completed", "accepted", "completed", "unknown"])

    async def send() -> str:
        return next(outcomes)

    fates = await open_loop(send, requests=4, rate=1e6, clock=PatientClock())
    fates.note_later("failed")
    report = fates.report()

    assert report["outcomes"] == {"completed": 2, "accepted": 1, "unknown": 1}
    assert report["accepted_became"] == {"failed": 1}
    assert set(report["by_outcome"]) == {"completed", "accepted", "unknown"}


def test_a_stall_lies_between_completed_requests_whatever_else_was_answered():
    fates = Fates()

    fates.note("completed", time.perf_counter())
    between = time.perf_counter()
    while time.perf_counter() < between + 0.01:
        fates.note("refused", time.perf_counter())
    fates.note_later("completed")

    assert fates.report()["longest_stall_ms"] >= 10
