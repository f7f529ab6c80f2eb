from dispatcher.clock import SystemClock
from dispatcher.store.database_time import SLOW_S, STALE_S, DatabaseTime


class SetClock(SystemClock):
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at


def test_it_runs_on_from_the_last_answer():
    clock = SetClock()
    time = DatabaseTime(clock)

    time.note(5_000, time.sending())
    clock.at += 0.25

    assert time.now_ms() == 5_250


def test_it_is_unknown_before_the_first_answer_and_long_after_the_last():
    clock = SetClock()
    time = DatabaseTime(clock)
    before = time.now_ms()
    time.note(5_000, time.sending())
    clock.at += STALE_S + 1

    assert before is None
    assert time.now_ms() is None


def test_an_answer_that_was_long_under_way_changes_nothing():
    clock = SetClock()
    time = DatabaseTime(clock)
    time.note(1_000_000, time.sending())
    sent_at = time.sending()
    clock.at += 8

    time.note(1_001_000, sent_at)

    assert time.now_ms() == 1_008_000


def test_a_slower_answer_never_sets_it_back():
    clock = SetClock()
    time = DatabaseTime(clock)
    time.note(1_000_000, time.sending())
    shown = []
    for _ in range(100):
        sent_at = time.sending()
        clock.at += SLOW_S
        time.note(int(clock.at * 1000) + 900_000 - 400, sent_at)
        shown.append(time.now_ms() or 0)

    assert shown == sorted(shown)
    assert shown[0] == 1_000_500 - 1


def test_it_is_never_ahead_of_a_clock_that_runs_a_little_slower():
    clock = SetClock()
    time = DatabaseTime(clock)
    slower = 1 - 5e-5

    for _ in range(2_000):
        clock.at += 20
        time.note(int(clock.at * 1000 * slower), time.sending())
        clock.at += 20
        shown = time.now_ms()

        assert shown is not None
        assert shown <= clock.at * 1000 * slower + 2


def test_a_clock_that_was_set_back_is_followed():
    clock = SetClock()
    time = DatabaseTime(clock)
    time.note(1_000_000, time.sending())

    time.note(900_000, time.sending())

    assert time.now_ms() == 900_000


def test_of_another_server_nothing_is_known():
    time = DatabaseTime(SetClock())
    time.note(5_000, time.sending())

    time.forget()

    assert time.now_ms() is None
