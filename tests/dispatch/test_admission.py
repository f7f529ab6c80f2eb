from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace

import pytest

from dispatcher.dispatch.admission import Admission, AdmissionBounds, OpenHandoffs
from dispatcher.errors import OverloadedError, UnavailableError
from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.agent import Agent

HERE = "production"
ORDER, FAQ = Capability("order.query"), Capability("faq.answer")


class Backlog:
    """Two agents can do orders; so could one that is gone and one elsewhere. Nobody is left for the FAQ."""

    def __init__(self, open_in_all: int = 0, **waiting: int) -> None:
        self._open = open_in_all
        self._waiting = waiting

    def total_open(self) -> int:
        return self._open

    def open_at(self, agent_id: AgentId) -> int:
        return self._waiting.get(agent_id, 0) + self.capacity(agent_id)

    def capacity(self, agent_id: AgentId) -> int:
        return 0 if agent_id == "gone" else 8

    def group(self, capability: Capability) -> Sequence[Agent]:
        places = {"a": HERE, "b": HERE, "gone": HERE, "elsewhere": "staging"}
        return [
            SimpleNamespace(agent_id=AgentId(name), environment=place)  # type: ignore[misc]
            for name, place in (places if capability == ORDER else {}).items()
        ]


def admission(backlog: Backlog) -> Admission:
    return Admission(backlog=backlog, bounds=AdmissionBounds(max_open=10, max_backlog=5, max_handoffs=3))


def test_what_one_agent_of_the_group_still_takes_is_accepted() -> None:
    admission(Backlog(a=5, b=4)).check([ORDER], HERE)


def test_what_the_whole_group_is_too_full_for_is_refused_with_a_time_to_come_back() -> None:
    with pytest.raises(OverloadedError) as refused:
        admission(Backlog(a=5, b=6)).check([None, ORDER], HERE)

    assert (refused.value.error_code, refused.value.retry_after_s) == ("backlog_full", 2)


def test_what_nobody_would_do_is_no_flood() -> None:
    admission(Backlog(a=9, b=9)).check([None, FAQ], HERE)
    admission(Backlog(a=9, b=9)).check([ORDER], "elsewhere")


def test_the_total_has_a_bound_of_its_own() -> None:
    admission(Backlog(open_in_all=9)).check_total()

    with pytest.raises(OverloadedError) as refused:
        admission(Backlog(open_in_all=10)).check_total()

    assert refused.value.error_code == "too_much_open"


def test_no_more_may_wait_for_people_than_are_counted() -> None:
    door = admission(Backlog())
    door.handoffs.set_count(2)
    with door.reserving(1):
        door.handoffs.add(1)

    with pytest.raises(OverloadedError) as refused, door.reserving(1):
        pass

    assert (refused.value.error_code, refused.value.retry_after_s) == ("too_many_handoffs", 2)
    with door.reserving(0):
        pass


def test_every_part_of_a_message_needs_room() -> None:
    door = admission(Backlog())

    with pytest.raises(OverloadedError), door.reserving(4):
        pass
    with door.reserving(3):
        pass


def test_room_is_kept_while_a_message_is_accepted_and_given_back_where_it_is_not() -> None:
    door = admission(Backlog())

    with suppress(UnavailableError), door.reserving(3):
        with pytest.raises(OverloadedError), door.reserving(1):
            pass
        raise UnavailableError("it was not accepted")

    with door.reserving(3):
        pass


def test_what_was_accepted_since_a_count_began_comes_on_top_of_it() -> None:
    waiting = OpenHandoffs()
    waiting.add(2)
    waiting.begin_count()
    waiting.add(1)

    assert waiting.count == 3
    waiting.set_count(2)

    assert waiting.count == 3
    waiting.begin_count()
    waiting.set_count(3)
    assert waiting.count == 3
