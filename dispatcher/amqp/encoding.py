"""Messages and what is said of them as frames: AMQP 0-9-1, section 4.2.

The library encodes every field of every message anew, through a table of types. Here is only what we
send for each message; that it is what the library would write is a test.
"""

import struct
from typing import NamedTuple

from aiormq import spec
from pamqp.base import Frame

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
"""Types of frames."""
FRAME_END = b"\xce"
HEAD = struct.Struct(">BHI")
"""How each frame begins: type, channel, bytes of its payload; `FRAME_END` comes after that."""

_SETTLED = struct.Struct(">BHI4sQBB")
_CONTENT = struct.Struct(">HHQH")
_CORRELATION_ID, _REPLY_TO, _EXPIRATION, _MESSAGE_ID, _TYPE = 1 << 10, 1 << 9, 1 << 8, 1 << 7, 1 << 5
_JSON = 1 << 15 | 1 << 12
_CONTENT_TYPE = b"\x10application/json"
_PERSISTENT, _TRANSIENT = b"\x02", b"\x01"


def method_id(method: type[Frame]) -> bytes:
    """The four bytes that a method's payload begins with."""
    return method.index.to_bytes(4)


_ACK, _REJECT = method_id(spec.Basic.Ack), method_id(spec.Basic.Reject)


class Properties(NamedTuple):
    """What goes with a JSON body; texts have at most 255 bytes, and empty ones are not sent."""

    message_id: str
    kind: str
    persistent: bool = True
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None


def ack(channel: int, tag: int, *, multiple: bool) -> bytes:
    """The frame that acknowledges a message, or all up to it."""
    return _SETTLED.pack(METHOD, channel, 13, _ACK, tag, multiple, FRAME_END[0])


def reject(channel: int, tag: int, *, requeue: bool) -> bytes:
    """The frame that gives a message back, or up."""
    return _SETTLED.pack(METHOD, channel, 13, _REJECT, tag, requeue, FRAME_END[0])


def content(channel: int, properties: Properties, body: bytes, most: int) -> bytes:
    """A message's frames after its method: the header, and the body in parts of at most `most` bytes.

    Raises OverflowError for a property that is too long.
    """
    frames = [_frame(HEADER, channel, _header(properties, len(body)))]
    frames += [_frame(BODY, channel, body[at : at + most]) for at in range(0, len(body), most)]
    return b"".join(frames)


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return HEAD.pack(kind, channel, len(payload)) + payload + FRAME_END


def _header(properties: Properties, size: int) -> bytes:
    """The properties come in the order of their flags, the highest first."""
    flags, values = _JSON, [_CONTENT_TYPE, _PERSISTENT if properties.persistent else _TRANSIENT]
    for flag, text in (
        (_CORRELATION_ID, properties.correlation_id),
        (_REPLY_TO, properties.reply_to),
        (_EXPIRATION, properties.expiration),
        (_MESSAGE_ID, properties.message_id),
        (_TYPE, properties.kind),
    ):
        if text:
            flags |= flag
            encoded = text.encode()
            values += (len(encoded).to_bytes(), encoded)
    return _CONTENT.pack(spec.Basic.frame_id, 0, size, flags) + b"".join(values)
