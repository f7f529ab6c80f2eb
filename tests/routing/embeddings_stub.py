"""An endpoint for embeddings on loopback that can be told to misbehave. Vectors are hashed n-grams."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dispatcher.routing.hashing_encoder import HashingEncoder

Rows = list[dict[str, Any]]


@dataclass
class Stub:
    """What it was asked, and how it answers: `mood` names a row of `answer`."""

    url: str = ""
    mood: str = "well"
    paths: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set when a request came that gets no answer until `released` is set."""
    released: threading.Event = field(default_factory=threading.Event)
    gave_up: bool = False
    """Nobody released it in time."""
    refuses: str | None = None
    """A text that no call may hold."""
    encodings: list[str | None] = field(default_factory=list)
    """What forms of an answer were asked for."""

    def answer(self, rows: Rows) -> tuple[int, bytes]:
        """Status and body."""
        if self.mood.isdecimal():
            return int(self.mood), b'{"error": {"message": "secret details"}}'
        changed = {
            "well": lambda: rows,
            "shuffled": lambda: rows[::-1],
            "too few": lambda: rows[:-1],
            "too many": lambda: [*rows, rows[0] | {"index": len(rows)}],
            "twice the same": lambda: [row | {"index": 0} for row in rows],
            "too short": lambda: [row | {"embedding": row["embedding"][:3]} for row in rows],
            "ragged": lambda: [rows[0] | {"embedding": [1.0]}, *rows[1:]],
            "words": lambda: [row | {"embedding": ["a", "b"]} for row in rows],
            "null": lambda: [row | {"embedding": [None, *row["embedding"][1:]]} for row in rows],
            "huge": lambda: [row | {"embedding": [1e300, *row["embedding"][1:]]} for row in rows],
            "no rows": lambda: None,
        }
        if self.mood in changed:
            return 200, json.dumps({"object": "list", "data": changed[self.mood]()}).encode()
        bodies = {
            "nan": b'{"data": [{"embedding": [NaN, 1.0]}]}',
            "html": b"<html>",
            "endless": b" " * 8_000_000,
        }
        return 200, bodies[self.mood]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub: Stub

    def do_POST(self) -> None:
        stub = self.stub
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        stub.paths.append(self.path)
        stub.asked.append(asked)
        stub.keys.append(self.headers["Authorization"])
        stub.encodings.append(self.headers["Accept-Encoding"])
        if stub.mood == "slow":
            stub.arrived.set()
            stub.gave_up |= not stub.released.wait(timeout=20)
        if stub.mood in {"slow", "broken off"}:
            self.close_connection = True
            return
        vectors = HashingEncoder().encode(asked["input"])
        rows = [{"index": at, "embedding": row} for at, row in enumerate(vectors.tolist())]
        status, body = (422, b"secret details") if stub.refuses in asked["input"] else stub.answer(rows)
        self.send_response(status)
        if status == 307:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def handle_error(self, *_: object) -> None:
        """Clients that hang up are what is tested."""


@contextmanager
def embeddings_stub() -> Iterator[Stub]:
    """A running one."""
    stub = Stub()
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"stub": stub}))
    stub.url = f"http://127.0.0.1:{server.server_address[1]}/v1/embeddings"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield stub
    finally:
        stub.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
