"""The requests that are sent: complete HTTP messages, made before the clock runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import orjson

from dispatcher.bench.address import loopback_address
from dispatcher.bench.echo import MESSAGES, note
from dispatcher.identifiers import new_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A gateway in development mode that knows the agent of `echo`."""

    url: str

    @property
    def address(self) -> tuple[str, int]:
        """Host and port; see `loopback_address`."""
        return loopback_address(self.url, "http")


def posts(target: Target, payload_kb: int = 1) -> Iterator[bytes]:
    """Messages without end, each with an idempotency key of its own, as our client sends them."""
    host, port = target.address
    context = {"note": note(payload_kb)}
    bodies = [orjson.dumps({"message": text, "context": context}) for text in MESSAGES]
    run = new_id()
    for number in count():
        body = bodies[number % len(bodies)]
        head = (
            f"POST /v1/chat HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"Idempotency-Key: {run}-{number}\r\n\r\n"
        )
        yield head.encode("ascii") + body


def post(target: Target, path: str, body: bytes) -> bytes:
    """One POST of a JSON document."""
    host, port = target.address
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def get(target: Target, path: str) -> bytes:
    """One GET."""
    host, port = target.address
    return f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode("ascii")
