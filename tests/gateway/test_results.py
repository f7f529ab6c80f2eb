import pytest

from dispatcher.errors import RequestError
from dispatcher.protocol.link import Settlement
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from tests.gateway.stubs import ORDER_AGENT, Api

BODY = b'{"type": "result"}'


def test_a_callback_is_handed_over_as_it_came(api: Api):
    response = api.send(BODY, path="/v1/results/t1", key=ORDER_AGENT)

    assert response.status_code == 204
    assert api.callbacks == [("t1", BODY, "order")]


@pytest.mark.parametrize(
    ("settlement", "status", "code"),
    [(Settlement.DEAD, 422, "unreadable_result"), (Settlement.REQUEUE, 503, "unavailable")],
)
def test_what_is_not_stored_is_said_so(api: Api, settlement: Settlement, status: int, code: str):
    api.settlement = settlement

    response = api.send(BODY, path="/v1/results/t1", key=ORDER_AGENT)

    assert (response.status_code, response.json()["code"]) == (status, code)


def test_a_result_whose_token_does_not_fit_is_refused(api: Api):
    api.settlement = RequestError("The token fits no attempt.", code="result_refused")

    response = api.send(BODY, path="/v1/results/t1", key=ORDER_AGENT)

    assert (response.status_code, response.json()["code"]) == (403, "result_refused")


def test_a_callback_may_be_as_large_as_a_frame(api: Api):
    fits = api.send(b" " * MAX_FRAME_BYTES, path="/v1/results/t1", key=ORDER_AGENT)
    larger = api.send(b" " * (MAX_FRAME_BYTES + 1), path="/v1/results/t1", key=ORDER_AGENT)

    assert (fits.status_code, larger.status_code) == (204, 413)


def test_a_caller_has_no_results_to_give(api: Api):
    assert api.send(BODY, path="/v1/results/t1").status_code == 403
