"""The bounds of the inbox in memory (I9)."""

import tracemalloc

import pytest

from dispatcher.sdk.inbox import Claim, Verdict
from dispatcher.sdk.memory_inbox import MAX_BYTES, MAX_KEYS, MemoryInbox


def claim(key: str) -> Claim:
    return Claim(key=key, owner="me", attempt=1, idempotent=True, hold_s=60.0)


async def finish(inbox: MemoryInbox, key: str, outcome: bytes = b"done") -> None:
    await inbox.claim(claim(key))
    await inbox.finish(key, "me", outcome, retryable=False)


async def test_at_the_bound_the_longest_finished_is_forgotten():
    inbox = MemoryInbox(max_keys=2)
    await finish(inbox, "a")
    await finish(inbox, "b")

    new = await inbox.claim(claim("c"))

    assert new.verdict is Verdict.RUN
    assert (await inbox.claim(claim("b"))).verdict is Verdict.REPLAY
    assert (await inbox.claim(claim("a"))).verdict is not Verdict.REPLAY


async def test_running_tasks_are_never_forgotten_and_a_new_one_is_refused():
    inbox = MemoryInbox(max_keys=2)
    await inbox.claim(claim("a"))
    await inbox.claim(claim("b"))

    assert (await inbox.claim(claim("c"))).verdict is Verdict.FULL


async def test_outcomes_are_bounded_by_their_bytes():
    inbox = MemoryInbox(max_bytes=10)
    await finish(inbox, "a", b"12345")
    await finish(inbox, "b", b"12345")

    await finish(inbox, "c", b"1")

    assert (await inbox.claim(claim("b"))).verdict is Verdict.REPLAY
    assert (await inbox.claim(claim("c"))).verdict is Verdict.REPLAY
    assert (await inbox.claim(claim("a"))).verdict is Verdict.RUN


@pytest.mark.parametrize("outcome_bytes", [MAX_BYTES // MAX_KEYS, 1024, 16 * 1024])
async def test_at_the_default_bounds_keys_and_records_cost_no_more_than_outcomes(outcome_bytes):
    inbox = MemoryInbox()
    tracemalloc.start()
    for number in range(MAX_KEYS):
        await finish(inbox, f"{number:036d}:0", b"o" * (outcome_bytes - 1) + bytes([number % 256]))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert used < 2 * MAX_BYTES


async def test_closing_forgets_everything():
    inbox = MemoryInbox()
    await finish(inbox, "a")

    await inbox.aclose()

    assert (await inbox.claim(claim("a"))).verdict is Verdict.RUN
