"""What a heartbeat says of the last five minutes."""

from dispatcher.protocol.frames import CapabilityLoad
from dispatcher.sdk.load_window import MAX_CALLS, WINDOW_S, FinishedCall, LoadWindow, summary


def call(*, capability="a", at=0.0, seconds=0.1, failed=False) -> FinishedCall:
    return FinishedCall(capability=capability, finished_at=at, seconds=seconds, failed=failed)


def test_without_calls_there_is_no_quantile():
    assert summary([]) == CapabilityLoad(requests=0, errors=0, p95_ms=None)


def test_the_quantile_is_the_nearest_rank():
    calls = [call(seconds=number / 1000) for number in range(1, 101)]

    assert summary(calls).p95_ms == 95.0


def test_capabilities_are_counted_apart_and_together():
    window = LoadWindow()
    window.add(call(capability="a", failed=True))
    window.add(call(capability="b"))

    by_capability = window.by_capability(1.0)

    assert (by_capability["a"].errors, by_capability["b"].errors) == (1, 0)
    assert window.total(1.0).requests == 2


def test_calls_older_than_the_window_are_forgotten():
    window = LoadWindow()
    window.add(call(at=0.0))
    window.add(call(at=10.0))

    assert window.total(WINDOW_S + 5.0).requests == 1


def test_the_window_is_bounded():
    window = LoadWindow()
    for _ in range(MAX_CALLS + 1):
        window.add(call())

    assert window.total(0.0).requests == MAX_CALLS
