"""What every inbox has to do, as tests that each store's test class inherits."""

import asyncio

from dispatcher.sdk.inbox import Claim, Inbox, Untold, Verdict


def claim(key: str = "k", **more) -> Claim:
    """A claim of `me` to the first attempt at what must not be repeated."""
    fields = {"owner": "me", "attempt": 1, "idempotent": False, "hold_s": 60.0}
    return Claim(key=key, **{**fields, **more})


class InboxBehaviour:
    """Inherited by one test class for each store; they have a fixture `inbox`."""

    async def test_of_many_deliveries_at_once_one_runs(self, inbox: Inbox) -> None:
        claims = (claim(owner=f"owner-{number}") for number in range(20))

        judgements = await asyncio.gather(*(inbox.claim(one) for one in claims))

        verdicts = [judgement.verdict for judgement in judgements]
        assert verdicts.count(Verdict.RUN) == 1
        assert verdicts.count(Verdict.ELSEWHERE) == 19

    async def test_a_finished_task_is_replayed_whoever_asks(self, inbox: Inbox) -> None:
        await inbox.claim(claim())
        await inbox.finish("k", "me", b"done", retryable=False)

        judgement = await inbox.claim(claim(owner="other", attempt=2, idempotent=True))

        assert (judgement.verdict, judgement.outcome) == (Verdict.REPLAY, b"done")

    async def test_a_later_attempt_runs_again_after_a_failure_that_may_be_retried(self, inbox: Inbox) -> None:
        await inbox.claim(claim())
        await inbox.finish("k", "me", b"failed", retryable=True)

        again = await inbox.claim(claim(attempt=2))
        await inbox.finish("k", "me", b"done", retryable=False)
        judgement = await inbox.claim(claim(attempt=3))

        assert again.verdict is Verdict.RUN
        assert judgement.outcome == b"done"

    async def test_a_lapsed_claim_is_taken_over_only_if_idempotent(self, inbox: Inbox) -> None:
        await inbox.claim(claim("a", owner="dead", hold_s=0.0))
        await inbox.claim(claim("b", owner="dead", hold_s=0.0))

        verdicts = [
            (await inbox.claim(claim("a", idempotent=False))).verdict,
            (await inbox.claim(claim("b", idempotent=True))).verdict,
        ]

        assert verdicts == [Verdict.UNKNOWN, Verdict.RUN]

    async def test_a_claim_that_is_held_on_does_not_lapse(self, inbox: Inbox) -> None:
        await inbox.claim(claim(owner="slow", hold_s=0.0))

        await inbox.hold("k", "slow", 60.0)

        assert (await inbox.claim(claim(idempotent=True))).verdict is Verdict.ELSEWHERE

    async def test_who_lost_a_claim_cannot_hold_it(self, inbox: Inbox) -> None:
        await inbox.claim(claim(owner="slow", hold_s=0.0))
        await inbox.claim(claim(owner="me", idempotent=True, hold_s=0.0))

        await inbox.hold("k", "slow", 60.0)

        assert (await inbox.claim(claim(owner="other", idempotent=True))).verdict is Verdict.RUN

    async def test_what_is_finished_or_unknown_is_not_held(self, inbox: Inbox) -> None:
        await inbox.claim(claim())
        await inbox.finish("k", "me", b"done", retryable=False)

        await inbox.hold("k", "me", 60.0)
        await inbox.hold("unheard", "me", 60.0)

        assert (await inbox.claim(claim())).verdict is Verdict.REPLAY
        assert (await inbox.claim(claim("unheard"))).verdict is Verdict.RUN

    async def test_who_lost_a_claim_cannot_finish_it(self, inbox: Inbox) -> None:
        await inbox.claim(claim(owner="slow", hold_s=0.0))
        await inbox.claim(claim(owner="me", idempotent=True))

        await inbox.finish("k", "slow", b"late", retryable=False)
        await inbox.finish("k", "me", b"mine", retryable=False)

        assert (await inbox.claim(claim())).outcome == b"mine"

    async def test_the_first_outcome_stays(self, inbox: Inbox) -> None:
        await inbox.claim(claim())
        await inbox.finish("k", "me", b"first", retryable=False)

        await inbox.finish("k", "me", b"second", retryable=False)

        assert (await inbox.claim(claim())).outcome == b"first"

    async def test_looking_writes_nothing(self, inbox: Inbox) -> None:
        looked = await inbox.claim(claim(owner="other", may_start=False))

        assert looked.verdict is Verdict.NOT_STARTED
        assert (await inbox.claim(claim(owner="me"))).verdict is Verdict.RUN

    async def test_finishing_what_was_never_claimed_does_nothing(self, inbox: Inbox) -> None:
        await inbox.finish("k", "me", b"done", retryable=False)

        assert (await inbox.claim(claim())).verdict is Verdict.RUN

    async def test_a_refusal_is_replayed_to_copies_of_its_attempt_and_of_earlier_ones(
        self, inbox: Inbox
    ) -> None:
        declined = await inbox.claim(claim(attempt=2, may_start=False, refusal=b"busy"))

        copies = [await inbox.claim(claim(owner="other", attempt=attempt)) for attempt in (1, 2)]

        assert declined.verdict is Verdict.NOT_STARTED
        assert [(copy.verdict, copy.outcome) for copy in copies] == [(Verdict.REPLAY, b"busy")] * 2

    async def test_a_later_attempt_may_run_after_a_refusal(self, inbox: Inbox) -> None:
        await inbox.claim(claim(may_start=False, refusal=b"busy"))

        later = await inbox.claim(claim(attempt=2))
        await inbox.finish("k", "me", b"done", retryable=False)

        assert later.verdict is Verdict.RUN
        assert (await inbox.claim(claim(attempt=3))).outcome == b"done"

    async def test_a_later_refusal_takes_the_place_of_an_earlier_one(self, inbox: Inbox) -> None:
        await inbox.claim(claim(may_start=False, refusal=b"busy"))
        await inbox.claim(claim(attempt=2, may_start=False, refusal=b"expired"))

        assert (await inbox.claim(claim(attempt=2))).outcome == b"expired"

    async def test_a_refusal_of_what_runs_elsewhere_changes_nothing(self, inbox: Inbox) -> None:
        await inbox.claim(claim(owner="other"))

        looked = await inbox.claim(claim(attempt=2, may_start=False, refusal=b"busy"))
        await inbox.finish("k", "other", b"done", retryable=False)

        assert looked.verdict is Verdict.ELSEWHERE
        assert (await inbox.claim(claim())).outcome == b"done"

    async def test_a_failure_for_good_of_what_is_idempotent_gives_way_to_a_repetition_only(
        self, inbox: Inbox
    ) -> None:
        await inbox.claim(claim(idempotent=True))
        await inbox.finish("k", "me", b"failed", retryable=False, failed=True)

        verdicts = [
            (await inbox.claim(claim(attempt=attempt, idempotent=idempotent))).verdict
            for attempt, idempotent in ((3, True), (4, False), (4, True))
        ]

        assert verdicts == [Verdict.REPLAY, Verdict.REPLAY, Verdict.RUN]

    async def test_what_succeeded_is_replayed_to_a_repetition(self, inbox: Inbox) -> None:
        await inbox.claim(claim(idempotent=True))
        await inbox.finish("k", "me", b"done", retryable=False)

        assert (await inbox.claim(claim(attempt=4, idempotent=True))).outcome == b"done"

    async def test_nothing_of_its_own_is_untold_to_a_process(self, inbox: Inbox) -> None:
        await inbox.claim(claim(envelope=b"to", hold_s=0.0))

        assert await inbox.untold("me") == ()


class LastingInboxBehaviour(InboxBehaviour):
    """What a store must do besides that outlives its process."""

    async def test_what_a_gone_owner_left_untold_is_found_until_it_is_told(self, inbox: Inbox) -> None:
        await inbox.claim(claim("ended", owner="gone", envelope=b"a", hold_s=0.0))
        await inbox.finish("ended", "gone", b"done", retryable=False)
        await inbox.claim(claim("broken off", owner="gone", envelope=b"b", hold_s=0.0))
        await inbox.claim(claim("alive", owner="sibling", envelope=b"c"))
        await inbox.claim(claim("short", owner="gone", hold_s=0.0))

        left = await inbox.untold("me")
        for task in left:
            await inbox.told(task.key, task.owner)

        assert set(left) == {
            Untold(key="ended", owner="gone", envelope=b"a", outcome=b"done"),
            Untold(key="broken off", owner="gone", envelope=b"b", outcome=None),
        }
        assert await inbox.untold("me") == ()

    async def test_what_was_told_is_still_replayed(self, inbox: Inbox) -> None:
        await inbox.claim(claim(envelope=b"a"))
        await inbox.finish("k", "me", b"done", retryable=False)

        await inbox.told("k", "me")

        assert (await inbox.claim(claim())).outcome == b"done"

    async def test_who_tells_late_does_not_take_away_what_its_successor_left(self, inbox: Inbox) -> None:
        await inbox.claim(claim(owner="first", envelope=b"a", hold_s=0.0))
        await inbox.claim(claim(owner="second", attempt=2, idempotent=True, envelope=b"b", hold_s=0.0))

        await inbox.told("k", "first")

        assert [(left.owner, left.envelope) for left in await inbox.untold("me")] == [("second", b"b")]
