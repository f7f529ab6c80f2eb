"""What every inbox has to do; the same suite for all of them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dispatcher.sdk.inbox import Claim, Inbox, Verdict
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.sqlite_inbox import SqliteInbox


@pytest.fixture(params=["memory", "sqlite"])
async def inbox(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Inbox]:
    opened: Inbox = (
        MemoryInbox() if request.param == "memory" else await SqliteInbox.open(tmp_path / "inbox.sqlite")
    )
    assert opened.kind == request.param
    yield opened
    await opened.aclose()


def claim(key="k", *, owner="me", attempt=1, idempotent=False, hold_s=60.0, may_start=True) -> Claim:
    return Claim(
        key=key, owner=owner, attempt=attempt, idempotent=idempotent, hold_s=hold_s, may_start=may_start
    )


async def test_of_many_deliveries_at_once_one_runs(inbox):
    claims = (claim(owner=f"owner-{number}") for number in range(20))

    judgements = await asyncio.gather(*(inbox.claim(one) for one in claims))

    verdicts = [judgement.verdict for judgement in judgements]
    assert verdicts.count(Verdict.RUN) == 1
    assert verdicts.count(Verdict.ELSEWHERE) == 19


async def test_a_finished_task_is_replayed_whoever_asks(inbox):
    await inbox.claim(claim())
    await inbox.finish("k", "me", b"done", retryable=False)

    judgement = await inbox.claim(claim(owner="other", attempt=2, idempotent=True))

    assert (judgement.verdict, judgement.outcome) == (Verdict.REPLAY, b"done")


async def test_a_later_attempt_runs_again_after_a_failure_that_may_be_retried(inbox):
    await inbox.claim(claim())
    await inbox.finish("k", "me", b"failed", retryable=True)

    again = await inbox.claim(claim(attempt=2))
    await inbox.finish("k", "me", b"done", retryable=False)
    judgement = await inbox.claim(claim(attempt=3))

    assert again.verdict is Verdict.RUN
    assert judgement.outcome == b"done"


async def test_a_lapsed_claim_is_taken_over_only_if_idempotent(inbox):
    await inbox.claim(claim("a", owner="dead", hold_s=0.0))
    await inbox.claim(claim("b", owner="dead", hold_s=0.0))

    verdicts = [
        (await inbox.claim(claim("a", idempotent=False))).verdict,
        (await inbox.claim(claim("b", idempotent=True))).verdict,
    ]

    assert verdicts == [Verdict.UNKNOWN, Verdict.RUN]


async def test_a_claim_that_is_held_on_does_not_lapse(inbox):
    await inbox.claim(claim(owner="slow", hold_s=0.0))

    await inbox.hold("k", "slow", 60.0)

    assert (await inbox.claim(claim(idempotent=True))).verdict is Verdict.ELSEWHERE


async def test_who_lost_a_claim_cannot_hold_it(inbox):
    await inbox.claim(claim(owner="slow", hold_s=0.0))
    await inbox.claim(claim(owner="me", idempotent=True, hold_s=0.0))

    await inbox.hold("k", "slow", 60.0)

    assert (await inbox.claim(claim(owner="other", idempotent=True))).verdict is Verdict.RUN


async def test_what_is_finished_or_unknown_is_not_held(inbox):
    await inbox.claim(claim())
    await inbox.finish("k", "me", b"done", retryable=False)

    await inbox.hold("k", "me", 60.0)
    await inbox.hold("unheard", "me", 60.0)

    assert (await inbox.claim(claim())).verdict is Verdict.REPLAY
    assert (await inbox.claim(claim("unheard"))).verdict is Verdict.RUN


async def test_who_lost_a_claim_cannot_finish_it(inbox):
    await inbox.claim(claim(owner="slow", hold_s=0.0))
    await inbox.claim(claim(owner="me", idempotent=True))

    await inbox.finish("k", "slow", b"late", retryable=False)
    await inbox.finish("k", "me", b"mine", retryable=False)

    assert (await inbox.claim(claim())).outcome == b"mine"


async def test_the_first_outcome_stays(inbox):
    await inbox.claim(claim())
    await inbox.finish("k", "me", b"first", retryable=False)

    await inbox.finish("k", "me", b"second", retryable=False)

    assert (await inbox.claim(claim())).outcome == b"first"


async def test_looking_writes_nothing(inbox):
    looked = await inbox.claim(claim(owner="other", may_start=False))

    assert looked.verdict is Verdict.NOT_STARTED
    assert (await inbox.claim(claim(owner="me"))).verdict is Verdict.RUN


async def test_finishing_what_was_never_claimed_does_nothing(inbox):
    await inbox.finish("k", "me", b"done", retryable=False)

    assert (await inbox.claim(claim())).verdict is Verdict.RUN
