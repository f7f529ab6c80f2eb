"""The flag a handler looks at."""

import threading

from dispatcher.sdk.flag import Flag
from tests.sdk.stub_link import WAIT_S


def test_it_is_set_once_and_for_all():
    flag = Flag()
    before = flag.is_set()

    flag.set()

    assert (before, flag.is_set(), flag.wait(0)) == (False, True, True)


def test_waiting_is_over_after_its_time():
    assert not Flag().wait(0)


def test_everyone_who_waits_is_woken():
    flag, woken = Flag(), []
    threads = [threading.Thread(target=lambda: woken.append(flag.wait(WAIT_S))) for _ in range(3)]
    for thread in threads:
        thread.start()

    flag.set()
    for thread in threads:
        thread.join(WAIT_S)

    assert woken == [True] * 3
