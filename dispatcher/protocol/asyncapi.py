"""The agent protocol over AMQP as an AsyncAPI 3 document, made from the frames and the topology.

What an agent in any language needs to join: names, arguments, message properties, schemas. The
operations are the agent's own: `receive` is what it consumes, `send` what it publishes. Message
`headers` are the AMQP basic properties of that name. `docs/asyncapi.json` is this for prefix `ard`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from dispatcher.identifiers import AgentId, InstanceId
from dispatcher.protocol.frames import VERSION, Frame
from dispatcher.protocol.operations import Message, Operation, messages, operations
from dispatcher.protocol.topology import (
    MAX_FRAME_BYTES,
    REGISTRY_KEY,
    RESULTS_KEY,
    SIGNALS_KEY,
    QueueArguments,
    Topology,
)

ASYNCAPI = "3.0.0"
CONTENT_TYPE = "application/json"
_BINDING = {"bindingVersion": "0.3.0"}
_AGENT, _INSTANCE = AgentId("{agent_id}"), InstanceId("{instance_id}")
_ABOUT = (
    "How an agent takes tasks from a dispatcher. Operations are the agent's: `receive` is what it "
    "consumes, `send` what it publishes. Message headers are AMQP basic properties. Exchanges and the task "
    "queue are the dispatcher's: they are there once it runs and the agent is registered; an agent declares "
    "its own exclusive queue only. Publish with confirms. Ignore fields and frame types you don't know."
)

Json = dict[str, Any]


def asyncapi(topology: Topology | None = None) -> Json:
    """The document for one prefix of names."""
    names, said, acts = topology or Topology(), messages(), operations()
    return {
        "asyncapi": ASYNCAPI,
        "id": "urn:agent-reach-dispatcher:agent-protocol",
        "info": {
            "title": "Agent-Reach Dispatcher: agent protocol (ATP)",
            "version": str(VERSION),
            "description": _ABOUT,
            "license": {"name": "Apache-2.0"},
            "x-max-frame-bytes": MAX_FRAME_BYTES,
        },
        "defaultContentType": CONTENT_TYPE,
        "servers": {
            "broker": {
                "host": "{host}:{port}",
                "protocol": "amqp",
                "protocolVersion": "0.9.1",
                "description": "RabbitMQ 3.10 or newer.",
                "variables": {"host": {"default": "localhost"}, "port": {"default": "5672"}},
            }
        },
        "channels": _channels(names, _used(acts.values())),
        "operations": {name: _operation(operation) for name, operation in acts.items()},
        "components": {
            "messages": {name: _message(name, message) for name, message in said.items()},
            "schemas": _schemas(message.frame for message in said.values()),
        },
    }


def _used(acts: Iterable[Operation]) -> dict[str, Json]:
    """The messages of every channel, by reference."""
    used: dict[str, Json] = {}
    for operation in acts:
        for channel, names in ((operation.channel, operation.messages), ("replies", operation.replies)):
            references = {name: {"$ref": f"#/components/messages/{name}"} for name in names}
            used.setdefault(channel, {}).update(references)
    return used


def _channels(names: Topology, used: Mapping[str, Json]) -> Json:
    agent = {"agent_id": {"description": "The agent's id."}}
    instance = {"instance_id": {"description": "The instance's id, new at every start."}}
    task_queue, own_queue = names.task_queue(_AGENT), names.instance_queue(_INSTANCE)
    channels: Json = {
        "registry": _by_key(names.registry_exchange, REGISTRY_KEY, "Membership calls, which are answered."),
        "heartbeats": _by_key(names.heartbeat_exchange, "", "Heartbeats, to all replicas.", kind="fanout"),
        "results": _by_key(names.result_exchange, RESULTS_KEY, "Answers to attempts."),
        "signals": _by_key(names.result_exchange, SIGNALS_KEY, "How running attempts go on."),
        "control": {
            **_by_key(
                names.control_exchange, _AGENT, "Bind an exclusive queue of your own with your agent id."
            ),
            "parameters": agent,
        },
        "tasks": {
            **_queue(task_queue, names.task_arguments(_AGENT), "Shared by all instances; declare nothing."),
            "parameters": agent,
        },
        "replies": {
            **_queue(
                own_queue,
                names.exclusive_arguments(),
                "Your own, declared by you; any free name does. Replies to your calls.",
                exclusive=True,
            ),
            "parameters": instance,
        },
    }
    return {name: {**channel, "messages": used[name]} for name, channel in channels.items()}


def _by_key(exchange: str, key: str, description: str, *, kind: str = "direct") -> Json:
    """An exchange and the routing key to publish with."""
    declared = {"name": exchange, "type": kind, "durable": True, "autoDelete": False}
    binding = {"is": "routingKey", "exchange": declared, **_BINDING}
    return {"address": key, "description": description, "bindings": {"amqp": binding}}


def _queue(name: str, arguments: QueueArguments, description: str, *, exclusive: bool = False) -> Json:
    """A queue and the arguments that it is declared with."""
    declared = {
        "name": name,
        "durable": not exclusive,
        "exclusive": exclusive,
        "autoDelete": False,
        "x-arguments": dict(arguments),
    }
    binding = {"is": "queue", "queue": declared, **_BINDING}
    return {"address": name, "description": description, "bindings": {"amqp": binding}}


def _operation(operation: Operation) -> Json:
    binding = {
        "deliveryMode": operation.delivery_mode,
        "mandatory": operation.mandatory,
        "ack": operation.ack,
    }
    document: Json = {
        "action": operation.action,
        "channel": {"$ref": f"#/channels/{operation.channel}"},
        "messages": _on_channel(operation.channel, operation.messages),
        "summary": operation.summary,
        "bindings": {"amqp": {k: v for k, v in binding.items() if v is not None} | _BINDING},
    }
    if operation.replies:
        document["reply"] = {
            "channel": {"$ref": "#/channels/replies"},
            "messages": _on_channel("replies", operation.replies),
        }
    return document


def _on_channel(channel: str, names: Iterable[str]) -> list[Json]:
    return [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in names]


def _message(name: str, message: Message) -> Json:
    named = ("message-id", "content-type", "type", *message.required, *message.optional)
    properties = {"content-type": {"const": CONTENT_TYPE}, "type": {"const": message.kind}}
    document: Json = {
        "name": name,
        "contentType": CONTENT_TYPE,
        "headers": {
            "type": "object",
            "properties": {field: properties.get(field, {"type": "string"}) for field in named},
            "required": list(message.required),
        },
        "payload": {"$ref": f"#/components/schemas/{message.frame.__name__}"},
        "bindings": {"amqp": {"messageType": message.kind, **_BINDING}},
    }
    if "correlation-id" in message.required:
        document["correlationId"] = {"location": "$message.header#/correlation-id"}
    return document


def _schemas(models: Iterable[type[Frame]]) -> Json:
    """JSON Schemas of the frames and of what they are made of, in one place."""
    wanted = [(model, "validation") for model in dict.fromkeys(models)]
    _, document = models_json_schema(wanted, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    schemas: Json = document["$defs"]
    return schemas
