"""Keys keep their slots, and freed slots are used again."""

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.slots import Key, Slots

A, B, C = (Key(Capability(name), AgentId("x")) for name in "abc")


def test_a_key_keeps_its_slot_and_its_place_is_by_name():
    slots = Slots()

    assert [slots.put(key) for key in (C, A, C)] == [0, 1, 0]
    assert slots.keys == (A, C)
    assert slots.order.tolist() == [1, 0]
    assert A in slots
    assert B not in slots


def test_a_freed_slot_is_given_again():
    slots = Slots()
    for key in (A, B):
        slots.put(key)

    assert slots.remove(A) == 0
    assert slots.remove(A) is None
    assert slots.size == 2
    assert slots.put(C) == 0
    assert len(slots) == slots.size == 2
