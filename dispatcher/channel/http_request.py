"""What requests to an agent say beside the frame: where they go, and their headers (pure)."""

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from dispatcher.protocol.frames import CancelFrame, TaskFrame


def cancel_url(endpoint: str, task_id: str) -> str:
    """Where an agent is asked to stop a task: one step below its endpoint, whose query stays."""
    parts = urlsplit(endpoint)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{quote(task_id, safe='')}").geturl()


def task_headers(task: TaskFrame, credential: str | None) -> dict[str, str]:
    """Of a task: copies of what the frame says, for proxies and logs."""
    copies = {
        "Idempotency-Key": task.idempotency_key,
        "X-Request-Id": task.request_id,
        "Traceparent": task.traceparent or "",
    }
    return {"Content-Type": "application/json", **_sendable(copies, credential)}


def cancel_headers(frame: CancelFrame, credential: str | None) -> dict[str, str]:
    """Of a cancellation, which has no body."""
    return _sendable({"X-Request-Id": frame.request_id}, credential)


def _sendable(copies: Mapping[str, str], credential: str | None) -> dict[str, str]:
    """With what every request has; a value that fits no header is left out.

    Without `Accept-Encoding: identity` every coding would be acceptable (RFC 9110, 12.5.3).
    """
    wanted = {**copies, "Authorization": f"Bearer {credential}" if credential else ""}
    fit = {name: text for name, text in wanted.items() if text and text.isascii() and text.isprintable()}
    return {"Accept-Encoding": "identity", **fit}
