from dispatcher.clock import SystemClock
from dispatcher.store.database_time import STALE_S, DatabaseTime


class SetClock(SystemClock):
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at


def test_it_runs_on_from_the_last_answer():
    clock = SetClock()
    time = DatabaseTime(clock)

    time.note(5_000)
    clock.at += 0.25

    assert time.now_ms() == 5_250


def test_it_is_unknown_before_the_first_answer_and_long_after_the_last():
    clock = SetClock()
    time = DatabaseTime(clock)
    before = time.now_ms()
    time.note(5_000)
    clock.at += STALE_S + 1

    assert before is None
    assert time.now_ms() is None
