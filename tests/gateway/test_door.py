import pytest

from dispatcher.errors import OverloadedError
from dispatcher.gateway.door import Door


def test_at_most_so_many_are_inside_and_who_leaves_makes_room():
    door = Door(2)

    with door.entering():
        with door.entering(), pytest.raises(OverloadedError) as refused, door.entering():
            raise AssertionError("a third one got in")
        with door.entering():
            pass

    assert refused.value.error_code == "too_many_arriving"


def test_who_fails_inside_leaves_too():
    door = Door(1)

    for _ in range(3):
        with pytest.raises(ValueError, match="bad"), door.entering():
            raise ValueError("bad")


def test_a_message_at_a_full_door_is_refused_unread(api):
    api.open(max_arriving=0)

    response = api.post("/v1/chat", {"message": "where is my order"})

    assert (response.status_code, response.json()["code"]) == (503, "too_many_arriving")
    assert int(response.headers["Retry-After"]) >= 1
    assert api.dispatcher.states == {}
