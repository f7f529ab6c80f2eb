"""What an agent may send and what it receives over AMQP, as data: messages and operations.

`asyncapi` publishes it; nothing here is asked while messages are exchanged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatcher.protocol import frames

PERSISTENT, TRANSIENT = 2, 1
"""AMQP delivery modes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A frame as one kind of AMQP message; `required` and `optional` are basic properties."""

    frame: type[frames.Frame]
    kind: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What the agent does with the messages of a channel."""

    action: str
    channel: str
    messages: tuple[str, ...]
    summary: str
    delivery_mode: int | None = None
    mandatory: bool | None = None
    ack: bool | None = None
    replies: tuple[str, ...] = ()


_CALL: Mapping[str, Any] = {"kind": "registry", "required": ("correlation-id", "reply-to")}
_REPLY: Mapping[str, Any] = {"kind": "reply", "required": ("correlation-id",)}


def messages() -> dict[str, Message]:
    """Every message by name: a frame's `type`, or what else a frame is used for."""
    return {
        "task": Message(
            frame=frames.TaskFrame, kind="task", required=("correlation-id",), optional=("expiration",)
        ),
        "cancel": Message(frame=frames.CancelFrame, kind="cancel"),
        "result": Message(frame=frames.ResultFrame, kind="result"),
        "started": Message(frame=frames.StartedFrame, kind="result"),
        "progress": Message(frame=frames.ProgressFrame, kind="result"),
        "partial": Message(frame=frames.PartialFrame, kind="result"),
        "renew": Message(frame=frames.RenewFrame, kind="result"),
        "register": Message(frame=frames.RegisterFrame, **_CALL),
        "drain": Message(frame=frames.DrainFrame, **_CALL),
        "leave": Message(frame=frames.LeaveFrame, **_CALL),
        "lease_check": Message(frame=frames.HeartbeatFrame, **_CALL),
        "heartbeat": Message(frame=frames.HeartbeatFrame, kind="heartbeat"),
        "registered": Message(frame=frames.RegisteredFrame, **_REPLY),
        "acknowledged": Message(frame=frames.AcknowledgedFrame, **_REPLY),
        "refused": Message(frame=frames.RefusedFrame, **_REPLY),
    }


_SIGNALS = ("started", "progress", "partial", "renew")


def operations() -> dict[str, Operation]:
    """Every operation by name, from the agent's side."""
    return {**_membership(), **_work()}


def _membership() -> dict[str, Operation]:
    call: Mapping[str, Any] = {
        "action": "send",
        "channel": "registry",
        "delivery_mode": PERSISTENT,
        "mandatory": True,
    }
    done = ("acknowledged", "refused")
    return {
        "register": Operation(
            **call,
            messages=("register",),
            replies=("registered", "refused"),
            summary="Join, at every start: a lease is granted.",
        ),
        "check_lease": Operation(
            **call,
            messages=("lease_check",),
            replies=done,
            summary="Ask whether the lease still holds; register again when it does not.",
        ),
        "drain": Operation(
            **call, messages=("drain",), replies=done, summary="Take no new work; finish what is in hand."
        ),
        "leave": Operation(**call, messages=("leave",), replies=done, summary="End the lease."),
        "heartbeat": Operation(
            action="send",
            channel="heartbeats",
            messages=("heartbeat",),
            summary="Tell every dispatcher replica, each `heartbeat_ms`, that the instance lives.",
            delivery_mode=TRANSIENT,
            mandatory=False,
        ),
    }


def _work() -> dict[str, Operation]:
    report: Mapping[str, Any] = {
        "action": "send",
        "channel": "results",
        "delivery_mode": PERSISTENT,
        "mandatory": True,
    }
    return {
        "take_task": Operation(
            action="receive",
            channel="tasks",
            messages=("task",),
            summary="Run once per idempotency key, answer, acknowledge only after the answer is confirmed. "
            "Reject without requeue what can't be read; give back with `basic.reject`, not `nack`.",
            ack=True,
        ),
        "answer": Operation(
            **report,
            messages=("result",),
            summary="Tell how an attempt ended; with publisher confirms, again until confirmed.",
        ),
        "signal": Operation(
            **{**report, "channel": "signals"},
            messages=_SIGNALS,
            summary="Tell how a running attempt goes on; required of tasks with `lease_ms` only.",
        ),
        "stop_task": Operation(
            action="receive",
            channel="control",
            messages=("cancel",),
            summary="Stop working on a task, if it runs here; the result is wanted by nobody.",
            ack=False,
        ),
    }
