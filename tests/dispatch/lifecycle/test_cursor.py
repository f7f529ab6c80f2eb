import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.dispatch.lifecycle.cursor import Cursor, Head, Mark, Stage
from dispatcher.errors import RequestError
from dispatcher.identifiers import RequestId
from tests.dispatch.builders import accepted, intent, with_id

STATE = with_id(accepted(intent(0), intent(1)), RequestId("0192f0c1-0000-7000-8000-000000abcdef"))
OTHER = with_id(STATE, RequestId("0192f0c1-0000-7000-8000-000000fedcba"))
MARKS = st.builds(Mark, st.integers(1, 9), st.sampled_from(Stage), st.integers(0, 9_999_999))


@given(st.sampled_from(Head), st.tuples(MARKS, MARKS))
def test_a_cursor_is_read_back_as_it_was_written(head, marks):
    cursor = Cursor(own="abcdef", head=head, marks=marks)

    assert Cursor.read(str(cursor), STATE) == cursor


def test_it_is_short_and_visible():
    text = str(Cursor.start(STATE))

    assert text.isascii()
    assert text.isprintable()
    assert len(text) < 32


@given(st.text())
def test_any_other_text_is_refused(text):
    with pytest.raises(RequestError) as refusal:
        Cursor.read(text, STATE)

    assert refusal.value.error_code == "invalid_event_id"


@pytest.mark.parametrize(
    "text",
    [
        "abcdef-0.1_0_0",
        "abcdef-0.1_0_0.1_0_0.1_0_0",
        "abcdef-4.1_0_0.1_0_0",
        "abcdef-0.0_0_0.1_0_0",
        "abcdef-0.1_0_00.1_0_0",
        "abcdef-0.1_0_-1.1_0_0",
        "abcdef-0.1_0_١.1_0_0",
        "abcdef-0.1_0_0.1_0_0\n",
        " abcdef-0.1_0_0.1_0_0",
        "abcdef-0.1_0_0.1_0_" + "9" * 5000,
    ],
)
def test_a_cursor_that_nobody_wrote_is_refused(text):
    with pytest.raises(RequestError):
        Cursor.read(text, STATE)


def test_the_cursor_of_another_request_is_refused():
    with pytest.raises(RequestError):
        Cursor.read(str(Cursor.start(OTHER)), STATE)
