import asyncio
import logging
import re

import pytest

from dispatcher import errors
from dispatcher.gateway.models import HealthReply, ReadyReply
from dispatcher.gateway.problem import kind_of
from dispatcher.gateway.receive import ARRIVED
from tests.gateway.stubs import ADMIN, ALICE, SECRET, Api

USER_TEXT = "zq7-user-text"
STATUSES = [
    (errors.DispatcherError("x"), 500),
    (errors.RequestError("x"), 422),
    (errors.RegistrationError("x"), 422),
    (errors.DeliveryError("x"), 503),
    (errors.UnroutableError("x"), 503),
    (errors.RefusedError("x"), 503),
    (errors.TooLargeError("x"), 413),
    (errors.OutcomeUnknownError("x"), 503),
    (errors.NotSentError("x"), 503),
    (errors.OverloadedError("x"), 503),
    (errors.UnavailableError("x"), 503),
    (errors.ConfigurationError("x"), 500),
]


def test_the_process_says_that_it_is_up(api):
    response = api.call("GET", "/healthz", key=None)

    assert HealthReply.model_validate_json(response.content).status == "ok"


def test_ready_names_every_part(api):
    response = api.call("GET", "/readyz", key=None)

    assert ReadyReply.model_validate_json(response.content).parts == {"ledger": None, "broker": None}


def test_not_ready_says_which_part_and_why(api):
    api.readiness["broker"] = "no connection yet"

    response = api.call("GET", "/readyz", key=None)

    assert response.status_code == 503
    assert response.json()["parts"] == {"broker": "no connection yet"}


def test_a_replica_that_stops_is_not_ready_but_up(api):
    api.is_stopping = True

    assert api.call("GET", "/readyz", key=None).json()["parts"] == {"gateway": "shutting down"}
    assert api.call("GET", "/healthz", key=None).status_code == 200


@pytest.mark.parametrize("path", ["/", "/v2/chat", "/v1/chat/", "/v1//chat", "/docs/x.js", "/%00"])
def test_an_unknown_path_is_a_problem_too(api, path):
    assert api.call("GET", path).json()["code"] == "not_found"


def test_a_wrong_method_says_which_are_right(api):
    response = api.call("PUT", "/v1/chat")

    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert response.headers["Allow"] == "POST"


def test_an_unforeseen_error_is_logged_under_an_id_and_not_shown(api, caplog):
    api.dispatcher.failure = ValueError(USER_TEXT)

    response = api.post("/v1/chat", {"message": "hi"})

    incident = response.json()["incident"]
    logged = [r for r in caplog.records if r.message == "http.internal_error"]
    assert response.status_code == 500
    assert [r.__dict__["incident"] for r in logged] == [incident]
    assert USER_TEXT not in response.text
    assert "Traceback" not in response.text


def test_an_error_of_ours_without_a_better_status_is_a_500(api):
    api.dispatcher.failure = errors.DispatcherError(USER_TEXT)

    response = api.post("/v1/chat", {"message": "hi"})

    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    assert USER_TEXT not in response.text


@pytest.mark.parametrize(("error", "status"), STATUSES, ids=lambda value: type(value).__name__)
def test_every_error_class_has_its_status(error, status):
    assert kind_of(error).status == status


def test_no_error_class_is_missing_from_the_table():
    defined = {e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)}

    assert {type(error) for error, _ in STATUSES} == defined


def test_the_access_log_holds_no_path_no_query_and_no_key(api, caplog):
    caplog.set_level(logging.DEBUG)

    api.call("GET", f"/v1/requests/{USER_TEXT}?q={USER_TEXT}", key=ALICE)
    api.call("GET", f"/{USER_TEXT}?token=ard_{USER_TEXT}", key=ALICE)

    lines = [r for r in caplog.records if r.name.startswith("dispatcher")]
    facts = [(r.__dict__["route"], r.__dict__["status"], r.__dict__["subject"]) for r in lines]
    assert facts == [("/v1/requests/{request_id}", 404, "alice"), ("unmatched", 404, None)]
    assert not any(USER_TEXT in str(r.__dict__) or ALICE in str(r.__dict__) for r in lines)


async def test_a_body_that_does_not_come_is_given_up(api):
    api.open(body_timeout_s=0.01)
    sent = await _raw(api, _never)

    assert sent[0]["status"] == 408


async def test_a_body_that_the_server_has_all_of_is_not_waited_for(api):
    raw = b'{"message": "hi"}'
    sent = await _raw(api, _never, {ARRIVED: {"body": lambda scope: raw}})

    assert sent[0]["status"] == 200
    assert api.dispatcher.submitted[0].message == "hi"


async def test_a_body_that_the_server_has_all_of_may_be_too_large(api):
    api.open(max_body_bytes=10)
    sent = await _raw(api, _never, {ARRIVED: {"body": lambda scope: b"x" * 11}})

    assert sent[0]["status"] == 413


async def test_a_body_that_the_server_still_waits_for_is_waited_for(api):
    api.open(body_timeout_s=0.01)
    sent = await _raw(api, _never, {ARRIVED: {"body": lambda scope: None}})

    assert sent[0]["status"] == 408


async def test_a_client_that_goes_away_is_no_error_of_ours(api, caplog):
    async def gone():
        return {"type": "http.disconnect"}

    await _raw(api, gone)

    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


async def _never():
    return await asyncio.Event().wait()


async def _raw(api, receive, extensions=None):
    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/chat",
        "raw_path": b"/v1/chat",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json"), (b"authorization", b"Bearer ard_alice")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "extensions": extensions or {},
    }
    await api.app(scope, receive, send)
    return sent


def test_the_docs_page_loads_nothing_from_outside(api):
    page = api.call("GET", "/docs", key=None)

    loaded = re.findall(r"""(?:src|href)=["']([^"']+)""", page.text)
    assert page.status_code == 200
    assert not re.findall(r"(?:https?:)?//[\w.-]+\.\w+", page.text)
    assert len(loaded) == 3
    for path in loaded:
        assert api.call("GET", path, key=None).status_code == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


def test_the_docs_can_be_left_out(api):
    api.open(docs=False)

    assert [api.call("GET", p, key=None).status_code for p in ("/docs", "/openapi.json")] == [404, 404]


def test_two_applications_share_nothing():
    one, other = Api(), Api()
    one.dispatcher.winner = SECRET
    one.is_stopping = True

    assert one.post("/v1/chat", {"message": "hi"}).status_code == 503
    assert other.post("/v1/chat", {"message": "hi"}, key=ADMIN).status_code == 200
