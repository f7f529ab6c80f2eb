from dispatcher.assembly.drain import Drain


class HeldClock:
    """Time that a test moves."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_all_that_ends_one_after_the_other_fits_into_the_time_of_a_shutdown() -> None:
    clock = HeldClock()
    drain = Drain(seconds=40, clock=clock)
    drain.begin()

    clock.now += drain.serving_s + drain.handlers_s

    assert 0 < drain.left_s() < 40 - drain.serving_s - drain.handlers_s


def test_what_ends_early_leaves_its_time_and_a_second_signal_gives_none() -> None:
    clock = HeldClock()
    drain = Drain(seconds=40, clock=clock)
    assert drain.left_s() == 38

    drain.begin()
    clock.now += 10
    drain.begin()

    assert drain.left_s() == 28
    clock.now += 100
    assert drain.left_s() == 0
