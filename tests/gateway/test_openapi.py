import pytest

from dispatcher.gateway.models import EVENT_DATA

OPERATIONS = {
    ("post", "/v1/chat"): "200 202 400 401 403 408 413 415 422 500 503",
    ("post", "/v1/route"): "200 400 401 403 408 413 415 422 500 503",
    ("get", "/v1/route/{capability}"): "200 400 401 403 404 500 503",
    ("get", "/v1/requests/{request_id}"): "200 400 401 403 404 500 503",
    ("delete", "/v1/requests/{request_id}"): "200 400 401 403 404 500 503",
    ("get", "/v1/requests/{request_id}/decisions"): "200 400 401 403 404 500 503",
    ("get", "/v1/requests/{request_id}/events"): "200 204 400 401 403 404 406 500 503",
    ("post", "/v1/agents"): "200 201 400 401 403 408 409 413 415 422 500 503",
    ("get", "/v1/agents"): "200 400 401 403 500 503",
    ("get", "/v1/agents/{agent_id}"): "200 400 401 403 404 500 503",
    ("delete", "/v1/agents/{agent_id}"): "204 400 401 403 404 409 500 503",
    ("delete", "/v1/agents/{agent_id}/leases/{lease_id}"): "204 400 401 403 404 409 500 503",
    ("post", "/v1/agents/{agent_id}/heartbeat"): "204 400 401 403 404 408 409 413 415 422 500 503",
    ("post", "/v1/agents/{agent_id}/drain"): "204 400 401 403 404 408 409 413 415 422 500 503",
    ("get", "/v1/agents/{agent_id}/direct-keys"): "200 400 401 403 404 500 503",
    ("post", "/v1/agents/try"): "200 400 401 403 408 413 415 422 500 503",
    ("post", "/v1/results/{task_id}"): "204 400 401 403 408 413 415 422 500 503",
    ("post", "/v1/requests/{request_id}/feedback"): "200 400 401 403 404 408 413 415 422 500 503",
    ("get", "/v1/dead"): "200 400 401 403 422 500 503",
    ("get", "/v1/dead/{dead_id}"): "200 400 401 403 404 500 503",
    ("post", "/v1/dead/{dead_id}/retry"): "202 400 401 403 404 408 409 413 415 422 500 503",
    ("get", "/v1/handoffs"): "200 400 401 403 422 500 503",
    ("post", "/v1/handoffs/{task_id}/answer"): "200 400 401 403 404 408 409 413 415 422 500 503",
    ("get", "/v1/calibrations"): "200 400 401 403 500 503",
    ("get", "/v1/calibrations/{number}"): "200 400 401 403 404 409 500 503",
    ("post", "/v1/calibrations/{number}/state"): "200 400 401 403 404 408 409 413 415 422 500 503",
    ("get", "/healthz"): "200 500",
    ("get", "/readyz"): "200 500 503",
}

REPORTS = ["ResultFrame", "StartedFrame", "ProgressFrame", "PartialFrame", "RenewFrame"]


@pytest.fixture
def document(api):
    return api.call("GET", "/openapi.json", key=None).json()


def operations(document):
    return {
        (method, path): operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def test_every_status_of_every_route_is_documented(document):
    listed = {key: " ".join(sorted(op["responses"])) for key, op in operations(document).items()}

    assert listed == OPERATIONS


def test_every_problem_is_documented_as_one(document):
    for operation in operations(document).values():
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"]


def test_every_reference_leads_somewhere(document):
    names = set(document["components"]["schemas"])

    assert set(references(document)) <= {f"#/components/schemas/{name}" for name in names}


def references(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for inner in node.values():
            yield from references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from references(inner)


def test_every_body_is_documented_and_closed(document):
    bodies = {
        path: [
            reference.rpartition("/")[2]
            for reference in references(operation["requestBody"]["content"]["application/json"])
        ]
        for (_, path), operation in operations(document).items()
        if "requestBody" in operation
    }

    assert bodies == {
        "/v1/chat": ["ChatBody"],
        "/v1/route": ["RouteBody"],
        "/v1/agents": ["RegisterFrame"],
        "/v1/agents/try": ["TrialBody"],
        "/v1/agents/{agent_id}/heartbeat": ["HeartbeatFrame"],
        "/v1/agents/{agent_id}/drain": ["DrainFrame"],
        "/v1/results/{task_id}": REPORTS,
        "/v1/requests/{request_id}/feedback": ["FeedbackBody"],
        "/v1/dead/{dead_id}/retry": ["RetryBody"],
        "/v1/handoffs/{task_id}/answer": ["AnswerBody"],
        "/v1/calibrations/{number}/state": ["StateBody"],
    }
    schemas = document["components"]["schemas"]
    names = [name for listed in bodies.values() for name in listed]
    assert all(schemas[name]["additionalProperties"] is False for name in names)


def test_what_agents_post_of_a_task_is_told_apart_by_its_type(document):
    posted = document["paths"]["/v1/results/{task_id}"]["post"]["requestBody"]
    discriminator = posted["content"]["application/json"]["schema"]["discriminator"]

    assert discriminator["propertyName"] == "type"
    assert list(discriminator["mapping"]) == ["result", "started", "progress", "partial", "renew"]


def test_every_guarded_route_says_that_it_needs_a_key(document):
    guarded = {path for (_, path), operation in operations(document).items() if operation.get("security")}

    assert guarded == {path for _, path in OPERATIONS} - {"/healthz", "/readyz"}
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


def test_the_hot_routes_headers_are_documented(document):
    parameters = document["paths"]["/v1/chat"]["post"]["parameters"]

    assert [p["name"] for p in parameters] == ["Idempotency-Key", "Prefer", "Last-Event-ID"]


def test_the_headers_that_tell_a_client_what_to_do_next_are_documented(document):
    responses = document["paths"]["/v1/chat"]["post"]["responses"]

    for status in ("200", "202"):
        assert {"Location", "Idempotency-Replayed"} <= set(responses[status]["headers"])
    for operation in operations(document).values():
        if "503" in operation["responses"]:
            assert set(operation["responses"]["503"]["headers"]) == {"Retry-After"}


def test_every_operation_says_what_it_does(document):
    assert all(op["summary"] and op["description"] for op in operations(document).values())


def test_the_document_is_the_same_each_time(api):
    assert api.client.get("/openapi.json").json() == api.client.get("/openapi.json").json()


@pytest.mark.parametrize(
    ("method", "path"), [("post", "/v1/chat"), ("get", "/v1/requests/{request_id}/events")]
)
def test_a_stream_and_the_data_of_its_events_are_documented(document, method, path):
    response = document["paths"][path][method]["responses"]["200"]

    assert list(response["content"]["text/event-stream"]["x-event-data"]) == list(EVENT_DATA)
    assert {"Cache-Control", "X-Accel-Buffering"} <= set(response["headers"])


def test_a_message_is_still_answered_in_json(document):
    content = document["paths"]["/v1/chat"]["post"]["responses"]["200"]["content"]

    assert content["application/json"]["schema"]["$ref"].endswith("/RequestReply")
