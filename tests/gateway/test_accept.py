import pytest

from dispatcher.errors import RequestError
from dispatcher.gateway.headers import admits_events, prefers_events, read_event_id


@pytest.mark.parametrize(
    "accept",
    [
        "text/event-stream",
        "Text/Event-Stream",
        "text/event-stream; charset=utf-8",
        "text/event-stream, application/json;q=0.9",
        "application/json;q=0.5, text/event-stream;q=0.6",
        "text/event-stream, */*",
        "text/event-stream;q=0.8, */*;q=0.8",
        "text/event-stream, application/json;q=0",
        "text/event-stream;q=0.001",
    ],
)
def test_events_are_preferred_where_they_rank_higher_or_are_alone(accept):
    assert prefers_events([accept])


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "text/*",
        "application/json",
        "application/json, text/event-stream",
        "text/event-stream;q=0.5, application/json",
        "text/event-stream;q=0.5, */*",
        "text/event-stream;q=0",
        "text/event-stream;q=abc",
        "text/event-stream;q=٣",
        "x-text/event-stream",
        "text/html, application/xhtml+xml, */*;q=0.8",
        ";;,,q=",
    ],
)
def test_otherwise_the_answer_is_json(accept):
    assert not prefers_events([accept])


def test_without_a_preference_the_answer_is_json():
    assert not prefers_events([])


def test_several_headers_are_one():
    assert prefers_events(["application/json;q=0.1", "text/event-stream"])


@pytest.mark.parametrize("accept", [[], ["*/*"], ["text/*"], ["text/event-stream"], ["text/html, */*;q=0.1"]])
def test_a_stream_is_sent_to_whoever_admits_it(accept):
    assert admits_events(accept)


@pytest.mark.parametrize(
    "accept", ["application/json", "text/event-stream;q=0, */*", "text/html", "", "nonsense"]
)
def test_and_to_nobody_else(accept):
    assert not admits_events([accept])


@pytest.mark.parametrize(("values", "event_id"), [([], None), ([""], None), (["x"], "x")])
def test_an_event_id_is_read(values, event_id):
    assert read_event_id(values) == event_id


def test_two_event_ids_are_refused():
    with pytest.raises(RequestError):
        read_event_id(["a", "b"])
