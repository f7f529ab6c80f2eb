"""Where requests to an agent go, and what they say beside the frame."""

import pytest

from dispatcher.channel.http_request import cancel_headers, cancel_url, task_headers
from dispatcher.protocol.frames import CancelFrame
from tests.channel.builders import TASK

CANCEL = CancelFrame(request_id="r1", task_id="t1", agent_id="order", reason="caller")


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("https://agent.example", "https://agent.example/t1"),
        ("https://agent.example/tasks", "https://agent.example/tasks/t1"),
        ("https://agent.example/tasks/", "https://agent.example/tasks/t1"),
        ("https://agent.example:8443/a/b?shop=7&x=%2F", "https://agent.example:8443/a/b/t1?shop=7&x=%2F"),
        ("http://[::1]/a%20b", "http://[::1]/a%20b/t1"),
    ],
)
def test_a_task_is_cancelled_one_step_below_the_endpoint(endpoint, url):
    assert cancel_url(endpoint, "t1") == url


def test_a_strange_task_id_leads_nowhere_else():
    assert cancel_url("http://a.example/tasks", "../x?y#ü") == "http://a.example/tasks/..%2Fx%3Fy%23%C3%BC"


def test_a_task_says_its_key_and_a_cancellation_does_not():
    task, cancel = task_headers(TASK, "secret"), cancel_headers(CANCEL, "secret")

    assert task.keys() - cancel.keys() == {"Idempotency-Key", "Content-Type"}
    assert {"X-Request-Id": "r1", "Authorization": "Bearer secret"}.items() <= cancel.items()


@pytest.mark.parametrize("unfit", ["ü", "a\r\nb", ""])
def test_what_fits_no_header_is_left_out(unfit):
    headers = task_headers(TASK.model_copy(update={"request_id": unfit}), unfit)

    assert headers.keys() == {"Content-Type", "Accept-Encoding", "Idempotency-Key"}
