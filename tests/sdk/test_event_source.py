"""Reading server-sent events."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.errors import UnavailableError
from dispatcher.sdk.event_source import EventParser

BODY = 'id: 1\nevent: plan\ndata: {"a":\ndata: "你"}\n\n: keep-alive\n\nid: 2\r\ndata:x\r\n\r\ndata: y\r\r'
EVENTS = [("plan", "1", '{"a":\n"你"}'), ("message", "2", "x"), ("message", "2", "y")]


@given(st.sets(st.integers(1, len(BODY.encode()) - 1)))
def test_it_does_not_matter_where_chunks_are_cut(cuts):
    body = BODY.encode() + b": end\n"
    places = [0, *sorted(cuts), len(body)]
    parser = EventParser()

    chunks = [body[begin:end] for begin, end in pairwise(places)]

    assert [event for chunk in chunks for event in parser.feed(chunk)] == EVENTS


def test_an_event_without_data_is_none():
    assert list(EventParser().feed(b"event: plan\n\nid: 3\n\nunknown: x\n\n")) == []


def test_an_event_over_the_limit_is_refused():
    with pytest.raises(UnavailableError, match="too long"):
        list(EventParser(max_event=10).feed(b"data: 12345678901"))
