"""What goes with a message, and what comes back: the gateway's JSON as typed dictionaries."""

from typing import Any, NotRequired, TypedDict


class RouteOptions(TypedDict, total=False):
    """What may go with a message; see the gateway's documentation of `POST /v1/route`.

    `match` says what `capability` is: `strict` its name, `loose` also an alias, `semantic` a description.
    """

    session_id: str
    user_id: str
    language: str
    context: dict[str, Any]
    match: str
    capability: str
    environment: str


class ChatOptions(RouteOptions, total=False):
    """`wait_s`: how long to wait for the answer. `idempotency_key`: a fresh one by default."""

    wait_s: float
    idempotency_key: str


class StreamOptions(RouteOptions, total=False):
    """`idempotency_key`: a fresh one by default."""

    idempotency_key: str


class Part(TypedDict):
    """What became of one intent; `result` is `{text, data}` or None, `error` `{code, message}` or None.

    `progress` is `{fraction, note}` of the attempt at work, None where its agent said nothing. `options` are
    what a part of the status `clarify` may mean, `handoff` is `{state, answer, answered_ms}` of a part
    that a person does (`handed_off`); older dispatchers send neither.
    """

    intent: str
    capability: str | None
    agent_id: str | None
    status: str
    result: dict[str, Any] | None
    error: dict[str, Any] | None
    similarity: float
    score: float | None
    attempts: int
    waited_ms: int | None
    elapsed_ms: int | None
    retry_after_s: int | None
    progress: dict[str, Any] | None
    options: NotRequired[list[dict[str, Any]]]
    handoff: NotRequired[dict[str, Any] | None]


class RequestAnswer(TypedDict):
    """A request as it stands, as the gateway sends it. While `status` is `open`, ask again later.

    `direct` is there, and true, where an agent answered past the gateway, which knows nothing of it.
    """

    request_id: str
    status: str
    answer: str | None
    parts: list[Part]
    direct: NotRequired[bool]
