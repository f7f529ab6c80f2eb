"""What /proc tells about this process."""

import os
import socket

from dispatcher.bench.process_time import cpu_ms, listener, machine_busy_ms, peak_mb, resident_mb

NOBODY = 2**22 + 1
"""Above the largest process id."""


def test_cpu_time_grows_with_work():
    before, busy = cpu_ms(os.getpid()), machine_busy_ms()

    while cpu_ms(os.getpid()) < before + 20:
        sum(range(10_000))

    assert machine_busy_ms() > busy


def test_a_process_that_is_gone_used_nothing():
    assert cpu_ms(NOBODY) == 0
    assert resident_mb(NOBODY) == peak_mb(NOBODY) == 0


def test_this_process_needs_some_memory_and_never_more_than_its_peak():
    assert 10 < resident_mb(os.getpid()) <= peak_mb(os.getpid())


def test_who_listens_is_found_by_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        assert listener(port) == os.getpid()

    assert listener(port) is None
