"""Bounds on calls that run at once, and pauses that agents asked for."""

import pytest

from dispatcher.channel.http_slots import CallSlots
from dispatcher.errors import RefusedError
from dispatcher.identifiers import AgentId

ORDER, FAQ = AgentId("order"), AgentId("faq")


class HeldClock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def refusal(slots, agent_id):
    with pytest.raises(RefusedError) as refused:
        slots.take(agent_id)
    return refused.value.error_code


def test_an_agent_gets_no_more_calls_than_its_bound_and_others_still_do():
    slots = CallSlots(total=10, per_agent=2, clock=HeldClock())
    for _ in range(2):
        slots.take(ORDER)

    assert refusal(slots, ORDER) == "refused"
    slots.take(FAQ)
    slots.give_back(ORDER)
    slots.take(ORDER)


def test_all_agents_together_get_no_more_calls_than_the_total():
    slots = CallSlots(total=2, per_agent=2, clock=HeldClock())
    slots.take(ORDER)
    slots.take(FAQ)

    assert refusal(slots, AgentId("third")) == "refused"


def test_an_agent_is_left_alone_while_its_pause_lasts():
    clock = HeldClock()
    slots = CallSlots(total=2, per_agent=2, clock=clock)
    slots.pause(ORDER, 5)
    slots.pause(ORDER, 1)
    clock.now += 4

    assert refusal(slots, ORDER) == "busy"
    slots.take(FAQ)
    clock.now += 1
    slots.take(ORDER)


def test_agents_whose_calls_and_pauses_are_over_are_forgotten():
    clock = HeldClock()
    slots = CallSlots(total=2, per_agent=2, clock=clock)
    for number in range(50):
        slots.take(AgentId(f"a{number}"))
        slots.give_back(AgentId(f"a{number}"))
        slots.pause(AgentId(f"a{number}"), 1)
        clock.now += 2

    assert (len(slots._running), len(slots._pauses)) == (0, 1)
