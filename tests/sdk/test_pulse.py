"""A process that was stopped counts the time of what came meanwhile."""

import pytest

from dispatcher.clock import SystemClock
from dispatcher.protocol.frames import ResultStatus
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.pulse import SETTLED_S, STOPPED_S, Pulse
from tests.sdk.stub_link import StubDelivery, StubLink, task_frame
from tests.sdk.working import Work, handled, intake_of


class Hand(SystemClock):
    """Stands where it is set."""

    at = 100.0

    def monotonic(self) -> float:
        return self.at


def test_while_it_beats_a_frame_came_when_it_was_seen():
    clock = Hand()
    pulse = Pulse(clock)

    clock.at += STOPPED_S / 2
    pulse.beat()

    assert pulse.since(clock.at + 0.1) == clock.at + 0.1


def test_what_is_seen_before_the_first_beat_after_a_gap_may_be_as_old_as_the_gap():
    pulse = Pulse(Hand())

    assert pulse.since(160.0) == 100.0


@pytest.mark.parametrize(("later", "since"), [(0.1, 100.0), (SETTLED_S + 0.1, 160.6)])
def test_shortly_after_a_gap_too_but_not_for_long(later, since):
    clock = Hand()
    pulse = Pulse(clock)
    clock.at = 160.0
    pulse.beat()

    assert pulse.since(160.0 + later) == pytest.approx(since)


async def test_a_budget_that_ended_while_the_process_was_stopped_starts_nothing():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        await intake.handle(
            StubDelivery(task_frame().model_dump_json().encode()), SystemClock().monotonic() - 60.0
        )

    assert (await link.result()).status is ResultStatus.EXPIRED
    assert not work.runs


async def test_time_is_looked_at_once_more_when_the_handlers_thread_has_the_call():
    clock = Hand()

    class Slow(MemoryInbox):
        """While it claims, the process is stopped for a minute."""

        async def claim(self, claim):
            judgement = await super().claim(claim)
            clock.at += 60.0
            return judgement

    work, link, inbox = Work(), StubLink(), Slow()
    async with intake_of(work, link, inbox, clock=clock) as intake:
        await handled(intake, task_frame("work.once"))
        await handled(intake, task_frame("work.once", budget_ms=600_000, start_within_ms=600_000))
        await handled(intake, task_frame("work.once", attempt=2, budget_ms=600_000, start_within_ms=600_000))

    statuses = [(await link.result()).status for _ in range(3)]
    assert statuses == [ResultStatus.EXPIRED, ResultStatus.EXPIRED, ResultStatus.SUCCESS]
    assert len(work.runs) == 1
