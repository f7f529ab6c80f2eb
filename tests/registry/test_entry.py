"""Registry frames as bytes, in and out."""

import json

import pytest

from dispatcher.errors import UnavailableError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.frames import DrainFrame, LeaveFrame, RegisteredFrame, RegisterFrame
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.registry.entry import RegistryEntry


async def _fits(frame: RegisterFrame) -> bool:
    return frame.key != "wrong"


@pytest.fixture
def entry(replica):
    return RegistryEntry(registrar=replica.registrar, authorize=_fits)


async def ask(entry, frame):
    body = frame if isinstance(frame, bytes) else frame.model_dump_json().encode()
    return json.loads(await entry.handle(body))


async def test_a_whole_membership_passes_as_frames(entry, replica, registration, beat):
    granted = RegisteredFrame.model_validate(await ask(entry, registration()))
    lease = {"agent_id": "order", "instance_id": granted.instance_id, "lease_id": granted.lease_id}

    entry.on_heartbeat(beat(granted, running=3).model_dump_json().encode())
    assert replica.view.status(AgentId("order")).running == 3
    for frame in (beat(granted), DrainFrame(**lease), LeaveFrame(**lease)):
        assert (await ask(entry, frame))["type"] == "acknowledged"
    for frame in (beat(granted), LeaveFrame(**lease)):
        assert (await ask(entry, frame))["code"] == "lease_superseded"


async def test_fields_of_a_newer_sender_are_ignored(entry, registration):
    document = {**registration().model_dump(mode="json"), "colour": "green"}

    reply = await ask(entry, json.dumps(document).encode())

    assert reply["type"] == "registered"


async def test_a_wrong_key_registers_nothing(entry, repository, registration):
    reply = await ask(entry, registration().model_copy(update={"key": "wrong"}))

    assert (reply["type"], reply["code"]) == ("refused", "invalid_key")
    assert repository.agents == {}


async def test_a_broken_rule_is_told_with_its_fields(entry, registration, declaration, capability):
    declared = declaration(capability(idempotent=False))

    reply = await ask(entry, registration(declaration=declared, inbox="memory"))

    assert (reply["code"], reply["fields"]) == ("memory_inbox_not_idempotent", ["order.query"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"null",
        b"{}",
        b'{"type":"task"}',
        b'{"type":"leave"}',
        b"[" * 10_000,
        b" " * (MAX_FRAME_BYTES + 1),
    ],
    ids=["empty", "bytes", "null", "nothing", "foreign", "incomplete", "deep", "large"],
)
async def test_what_can_not_be_read_is_refused(entry, body):
    reply = await ask(entry, body)

    assert (reply["type"], reply["code"]) == ("refused", "unreadable")


async def test_wrong_fields_are_named_without_their_values(entry, registration):
    document = registration().model_dump(mode="json")
    document["declaration"]["max_load"] = "secret"

    reply = await ask(entry, json.dumps(document).encode())

    assert reply["fields"] == ["declaration.max_load"]
    assert "secret" not in json.dumps(reply)


async def test_another_major_version_is_refused(entry, registration):
    document = {**registration().model_dump(mode="json"), "v": 2}

    assert (await ask(entry, json.dumps(document).encode()))["fields"] == ["v"]


async def test_a_part_that_is_missing_is_told_as_such(entry, replica, registration):
    replica.failure = UnavailableError("the encoder is gone")

    assert (await ask(entry, registration()))["code"] == "unavailable"


@pytest.mark.parametrize("body", [b"", b"\xff\x00", b'{"type":"leave"}', b'{"type":"heartbeat"}'])
def test_a_heartbeat_never_raises(entry, body):
    entry.on_heartbeat(body)
