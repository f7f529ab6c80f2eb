"""An agent in Node that has the published AsyncAPI document and a plain AMQP client, and nothing of ours."""

import json
import signal

import jsonschema
import pytest

from tests.interop.conftest import Fleet, Seen

MESSAGE = "我上周买的手机怎么还没发货？另外帮我续借图书馆的书。"
RENEWED = "已为您续借 30 天。"
pytestmark = [
    pytest.mark.timeout(120),  # on a busy machine four programs need a while to start
    pytest.mark.xdist_group("node"),  # started once, not once per process
]


def is_as_published(fleet: Fleet, operation: str, seen: Seen) -> bool:
    """Whether frame and properties of a message are what the document says of it."""
    components = fleet.document["components"]
    (message,) = fleet.document["operations"][operation]["messages"]
    said = components["messages"][message["$ref"].rpartition("/")[2]]
    payload = {**said["payload"], "components": components}
    jsonschema.validate(seen.frame, payload, jsonschema.Draft202012Validator)
    jsonschema.validate(seen.properties, said["headers"], jsonschema.Draft202012Validator)
    mode = fleet.document["operations"][operation]["bindings"]["amqp"].get("deliveryMode", 2)
    return bool(seen.properties["delivery-mode"] == mode)


async def test_a_chinese_request_is_answered_by_an_agent_in_another_language(fleet: Fleet) -> None:
    reply = await fleet.ask(MESSAGE)

    parts = {part["capability"]: part for part in reply["parts"]}
    assert (reply["status"], set(parts)) == ("completed", {"order.query", "library.renew"})
    assert parts["library.renew"]["result"] == {"text": RENEWED, "data": {"days": 30}}
    assert RENEWED in reply["answer"]
    assert is_as_published(fleet, "take_task", await fleet.tap.task())
    assert is_as_published(fleet, "answer", await fleet.tap.result())
    assert is_as_published(fleet, "answer", await fleet.tap.result()), "one is of our own agent"


async def test_what_it_must_not_run_it_does_not_run(fleet: Fleet) -> None:
    await fleet.ask("帮我续借图书馆的书")
    task, first = await fleet.tap.task(), await fleet.tap.result()

    await fleet.tap.publish(json.dumps(task.frame).encode())
    assert (await fleet.tap.result()).frame == first.frame, "the same key is answered from memory"

    late = {**task.frame, "idempotency_key": "another", "budget_ms": 0}
    await fleet.tap.publish(json.dumps(late).encode())
    assert (await fleet.tap.result()).frame["status"] == "expired"

    known = await fleet.dead_letters()
    await fleet.tap.publish(b"[")
    assert await fleet.dead_letter(known) == "["
    assert fleet.ran == 1


async def test_what_failed_is_run_again_for_an_operator_and_what_succeeded_is_not(fleet: Fleet) -> None:
    await fleet.ask("帮我续借图书馆的书")
    task, first = await fleet.tap.task(), await fleet.tap.result()
    reserved = {**task.frame, "idempotency_key": "reserved", "payload": {"text": "续借已被预约的书"}}

    statuses = []
    for frame in (reserved, reserved, {**reserved, "repeat": 1}, {**task.frame, "repeat": 1}):
        await fleet.tap.publish(json.dumps(frame).encode())
        statuses.append((await fleet.tap.result()).frame["status"])

    assert first.frame["status"] == "success"
    assert statuses == ["error", "error", "error", "success"]
    assert fleet.library.text.count('"key":"reserved"') == 3
    assert fleet.ran == 3, "the success, and the failure twice"


@pytest.mark.last
async def test_told_to_stop_it_leaves_and_gets_nothing_more(fleet: Fleet) -> None:
    assert fleet.library.stop(signal.SIGTERM) == 0

    reply = await fleet.ask(MESSAGE)

    parts = {part["capability"]: part["status"] for part in reply["parts"]}
    assert parts == {"order.query": "completed", "library.renew": "unavailable"}
    assert '"left"' in fleet.library.text
