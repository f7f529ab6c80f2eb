"""The published contract is golden files: a change on the wire shows as a change of a file."""

import json

import jsonschema
import pytest

from dispatcher.protocol import frames
from tests.architecture import schemas
from tests.interop.packages import packaged

TASK = frames.TaskFrame(
    request_id="r",
    task_id="t",
    attempt=1,
    idempotency_key="r:0",
    token="x" * 32,
    agent_id="order",
    capability="order.query",
    payload=frames.TaskPayload(text="where is it"),
    budget_ms=1000,
    start_within_ms=500,
    reply_to="results",
)


def published(name):
    return json.loads((schemas.FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def test_the_published_files_are_those_of_the_code():
    assert schemas.differing() == []


@pytest.mark.parametrize("name", sorted(frames.wire_schemas()))
def test_each_published_schema_is_valid_and_lets_unknown_fields_pass(name):
    schema = published(name)

    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema.get("additionalProperties", True)


def test_a_frame_we_send_fits_its_published_schema():
    jsonschema.validate(json.loads(TASK.model_dump_json()), published("task"))


def test_the_published_protocol_is_a_valid_asyncapi_document():
    official = packaged("@asyncapi/specs/schemas/3.0.0-without-$id.json")
    document = json.loads(schemas.PROTOCOL.read_text(encoding="utf-8"))

    assert not list(jsonschema.Draft7Validator(official).iter_errors(document))
