"""The AsyncAPI document tells what is really declared and sent."""

import json

import jsonschema
import pytest

from dispatcher.amqp import layout
from dispatcher.identifiers import AgentId, InstanceId
from dispatcher.protocol.asyncapi import asyncapi
from dispatcher.protocol.frames import CapabilityLoad, HeartbeatFrame, RefusedFrame, wire_schemas
from dispatcher.protocol.topology import Topology

TOPOLOGY = Topology(prefix="test")
DOCUMENT = asyncapi(TOPOLOGY)
SENT = {name: said for name, said in DOCUMENT["operations"].items() if said["action"] == "send"}


def resolved(reference):
    """What a local reference points at."""
    found = DOCUMENT
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def references(value):
    """Every `$ref` in a document."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def binding(channel):
    return DOCUMENT["channels"][channel]["bindings"]["amqp"]


def fits(message, frame):
    """Whether a frame of ours is what the document says of a message."""
    wanted = {**DOCUMENT["components"]["messages"][message]["payload"], "components": DOCUMENT["components"]}
    return jsonschema.Draft202012Validator(wanted).is_valid(json.loads(frame.model_dump_json()))


def test_every_reference_in_the_document_leads_somewhere():
    assert all(resolved(reference) is not None for reference in set(references(DOCUMENT)))


def test_every_frame_of_the_wire_is_a_message_of_some_operation():
    used = {name for channel in DOCUMENT["channels"].values() for name in channel["messages"]}

    assert used == set(DOCUMENT["components"]["messages"])
    assert used - {"lease_check"} == set(wire_schemas())


def test_exchanges_are_those_that_an_agent_finds_declared():
    published = {
        (binding(channel)["exchange"]["name"], binding(channel)["exchange"]["type"])
        for channel in ("registry", "results", "heartbeats", "control")
    }
    control = layout.control_queue(TOPOLOGY, InstanceId("one"), AgentId("clock")).bindings[0].exchange
    declared = (*layout.agent_exchanges(TOPOLOGY), control)

    assert published == {(exchange.name, exchange.kind) for exchange in declared}


@pytest.mark.parametrize("channel", ["registry", "results", "signals"])
def test_routing_keys_reach_the_queues_that_the_dispatcher_binds(channel):
    made = {
        "registry": layout.registry_queue,
        "results": layout.results_queue,
        "signals": layout.signals_queue,
    }
    queue = made[channel](TOPOLOGY)
    bound = {(each.exchange.name, each.key) for each in queue.bindings}

    assert (binding(channel)["exchange"]["name"], DOCUMENT["channels"][channel]["address"]) in bound


@pytest.mark.parametrize(
    ("channel", "queue"),
    [
        ("tasks", layout.task_queue(TOPOLOGY, AgentId("{agent_id}"))),
        ("replies", layout.instance_queue(TOPOLOGY, InstanceId("{instance_id}"))),
    ],
)
def test_queues_have_the_names_and_arguments_that_we_declare(channel, queue):
    published = binding(channel)["queue"]

    assert DOCUMENT["channels"][channel]["address"] == published["name"] == queue.name
    assert published["x-arguments"] == queue.arguments
    assert published["exclusive"] == queue.exclusive == (not published["durable"])


def test_what_is_answered_says_by_which_properties_the_answer_is_found():
    for operation in SENT.values():
        for message in map(resolved, references(operation["messages"])):
            required = resolved(message["$ref"])["headers"]["required"]
            assert ({"reply-to", "correlation-id"} <= set(required)) == ("reply" in operation)


def test_results_must_be_kept_by_the_broker_and_heartbeats_need_not():
    answer, heartbeat = (SENT[name]["bindings"]["amqp"] for name in ("answer", "heartbeat"))

    assert (answer["deliveryMode"], answer["mandatory"]) == (2, True)
    assert (heartbeat["deliveryMode"], heartbeat["mandatory"]) == (1, False)


def test_frames_of_ours_fit_the_schemas_in_the_document():
    beat = HeartbeatFrame(
        agent_id="clock",
        instance_id="one",
        lease_id="lease",
        running=1,
        capabilities={"time.tell": CapabilityLoad()},
    )

    assert fits("heartbeat", beat)
    assert fits("refused", RefusedFrame(code="unknown_agent", message="Who?"))
    assert not fits("registered", beat)
