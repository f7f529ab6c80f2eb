"""What a handler sees of its task."""

from dispatcher.sdk.task_view import view_of
from tests.sdk.stub_link import task_frame, task_view


def test_the_first_entity_of_a_kind_is_found():
    view = task_view(entities=({"kind": "amount", "value": 3.5}, {"kind": "amount", "value": 4.0}))

    assert view.entity("amount") == 3.5
    assert view.entity("phone") is None


def test_a_task_without_a_language_is_answered_in_english():
    view = view_of(task_frame(context={}), lambda: 1.0)

    assert (view.language, view.is_chinese, view.user_id) == ("en", False, None)


def test_what_the_frame_says_is_seen():
    view = view_of(task_frame(attempt=2), lambda: 1.5)

    assert (view.attempt, view.text, view.user_id, view.is_chinese) == (2, "do it", "u1001", True)
    assert view.time_left() == 1.5
