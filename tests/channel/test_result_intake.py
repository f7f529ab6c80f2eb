from collections import deque
from collections.abc import Sequence

import pytest

from dispatcher.channel.result_intake import ResultIntake, ResultRules
from dispatcher.clock import SystemClock
from dispatcher.protocol.link import Settlement

ACK, REQUEUE, DEAD = Settlement.ACK, Settlement.REQUEUE, Settlement.DEAD
RULES = ResultRules(requeue_pause_s=2.0, tries=3, remembered=2)


class NotedClock(SystemClock):
    """Notes each wait instead of waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


class Offers:
    """An intake whose handler answers or raises as told."""

    def __init__(self) -> None:
        self.answers: deque[Settlement | Exception] = deque()
        self.clock = NotedClock()
        self._intake = ResultIntake(self._on_result, RULES, self.clock)

    async def of(self, frame: bytes, *answers: Settlement | Exception) -> Sequence[Settlement]:
        """What becomes of the frame each time, if the handler answers so."""
        self.answers.extend(answers)
        return [await self._intake.offer(frame) for _ in answers]

    async def _on_result(self, _frame: bytes) -> Settlement:
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer


def broken() -> Exception:
    return ValueError("a fault of ours")


@pytest.mark.parametrize("answer", Settlement)
async def test_an_answer_is_carried_out_as_it_is(answer: Settlement):
    assert await Offers().of(b"result", answer) == [answer]


async def test_only_what_is_given_back_waits():
    offers = Offers()

    await offers.of(b"result", broken(), REQUEUE, DEAD, ACK)

    assert offers.clock.waits == [2.0, 2.0]


async def test_a_result_whose_handling_always_fails_is_dead_after_its_tries():
    settled = await Offers().of(b"poison", broken(), broken(), broken())

    assert settled == [REQUEUE, REQUEUE, DEAD]


async def test_an_outage_lasts_as_long_as_it_may():
    assert await Offers().of(b"result", *[REQUEUE] * 50, ACK) == [*[REQUEUE] * 50, ACK]


async def test_a_result_that_was_handled_starts_anew():
    offers = Offers()
    await offers.of(b"result", broken(), broken(), ACK)

    assert await offers.of(b"result", broken(), broken(), broken()) == [REQUEUE, REQUEUE, DEAD]


async def test_results_are_counted_each_on_its_own():
    offers = Offers()
    await offers.of(b"one", broken(), broken())

    assert await offers.of(b"two", broken()) == [REQUEUE]
    assert await offers.of(b"one", broken()) == [DEAD]


async def test_only_the_latest_failures_are_remembered():
    offers = Offers()
    await offers.of(b"forgotten", broken(), broken())
    await offers.of(b"two", broken())
    await offers.of(b"three", broken(), broken())

    assert await offers.of(b"forgotten", broken()) == [REQUEUE]
    assert await offers.of(b"three", broken()) == [DEAD]
