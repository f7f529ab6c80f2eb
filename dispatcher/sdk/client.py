"""A caller's way in: posts chat messages and reads answers.

    async with Client("http://127.0.0.1:8080", key="ard_…") as client:
        answer = await client.chat("Where is order 2025103101?", user_id="u1001")
        print(answer["answer"])

What comes back is the gateway's JSON, as plain dictionaries.
"""

import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any, ClassVar, Self, TypedDict, Unpack, cast
from urllib.parse import quote

from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import DispatcherError, UnavailableError
from dispatcher.identifiers import new_id
from dispatcher.sdk.transport import HttpRequest, HttpResponse, HttpTransport, Transport

TRIES = 3
RETRY_PAUSE_S = 0.2
"""Before the second try; doubles."""
DEFAULT_WAIT_S = 30.0
_ROUND_TRIP_S = 10.0


class RouteOptions(TypedDict, total=False):
    """What may go with a message; see the gateway's documentation of `POST /v1/route`."""

    session_id: str
    user_id: str
    language: str
    context: dict[str, Any]
    capability: str
    environment: str


class ChatOptions(RouteOptions, total=False):
    """`wait_s`: how long to wait for the answer. `idempotency_key`: a fresh one by default."""

    wait_s: float
    idempotency_key: str


class Part(TypedDict):
    """What became of one intent; `result` is `{text, data}` or None, `error` `{code, message}` or None."""

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


class RequestAnswer(TypedDict):
    """A request as it stands, as the gateway sends it. While `status` is `open`, ask again later."""

    request_id: str
    status: str
    answer: str | None
    parts: list[Part]


class CallError(DispatcherError):
    """The gateway refused; `error_code` is the problem's code, `status` the HTTP status.

    The message ends with what is wrong in the body, place by place, where the problem says so.
    """

    code: ClassVar[str] = "call_refused"

    def __init__(self, problem: dict[str, Any], *, status: int, retry_after_s: int | None = None) -> None:
        detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        message = " ".join([detail, *_reasons(problem)])
        super().__init__(message, code=str(problem.get("code") or "call_refused"))
        self.status = status
        self.problem = problem
        self.retry_after_s = retry_after_s


class Client:
    """An async context manager; all methods may be called concurrently.

    They raise `CallError` when the gateway says no, `UnavailableError` when it can't be reached.
    Lost connections are tried again, safely: with the same idempotency key.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._transport = transport or HttpTransport(url)
        self._clock = clock or SystemClock()
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, trace)

    async def chat(self, message: str, **options: Unpack[ChatOptions]) -> RequestAnswer:
        """Post a message and wait for its answer, at most `wait_s` seconds (30 by default)."""
        body = dict(options)
        key = body.pop("idempotency_key", None) or new_id()
        wait_s = options.get("wait_s", DEFAULT_WAIT_S)
        request = self._post("/v1/chat", {"message": message, **body}, wait_s, {"Idempotency-Key": str(key)})
        return _answer(await self._send(request))

    async def request(self, request_id: str) -> RequestAnswer:
        """The request as it stands now."""
        return _answer(await self._send(self._get(f"/v1/requests/{quote(request_id, safe='')}")))

    async def decisions(self, request_id: str) -> list[dict[str, Any]]:
        """How each of its intents was routed, with all candidates; see the gateway's documentation."""
        response = await self._send(self._get(f"/v1/requests/{quote(request_id, safe='')}/decisions"))
        decisions: list[dict[str, Any]] = _document(response).get("decisions", [])
        return decisions

    async def route(self, message: str, **options: Unpack[RouteOptions]) -> dict[str, Any]:
        """How the message would be understood and routed; nothing is sent to any agent."""
        response = await self._send(self._post("/v1/route", {"message": message, **options}, 0.0, {}))
        return _document(response)

    async def agents(self) -> list[dict[str, Any]]:
        """Every registered agent, declared and observed; needs an agent's or an admin's key."""
        agents: list[dict[str, Any]] = _document(await self._send(self._get("/v1/agents"))).get("agents", [])
        return agents

    async def remove_agent(self, agent_id: str) -> None:
        """Remove an agent with all its instances; one that still runs registers again.

        `CallError` with the code `unknown_agent` where there is none of that id.
        """
        path = f"/v1/agents/{quote(agent_id, safe='')}"
        await self._send(
            HttpRequest(method="DELETE", path=path, headers=self._headers, seconds=_ROUND_TRIP_S)
        )

    async def try_declaration(
        self, declaration: dict[str, Any], texts: Sequence[str], *, agent_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Where an agent with this declaration would rank for each text; nothing is registered."""
        body = {"declaration": declaration, "texts": list(texts), "agent_id": agent_id}
        response = await self._send(self._post("/v1/agents/try", body, 0.0, {}))
        rankings: list[dict[str, Any]] = _document(response).get("rankings", [])
        return rankings

    def _get(self, path: str) -> HttpRequest:
        return HttpRequest(method="GET", path=path, headers=self._headers, seconds=_ROUND_TRIP_S)

    def _post(self, path: str, body: dict[str, Any], wait_s: float, headers: dict[str, str]) -> HttpRequest:
        return HttpRequest(
            method="POST",
            path=path,
            headers={**self._headers, **headers, "Content-Type": "application/json"},
            body=json.dumps(body, ensure_ascii=False, allow_nan=False).encode(),
            seconds=wait_s + _ROUND_TRIP_S,
        )

    async def _send(self, request: HttpRequest) -> HttpResponse:
        response = await self._exchange(request)
        if response.status >= 300:
            raise CallError(_document(response), status=response.status, retry_after_s=_retry_after(response))
        return response

    async def _exchange(self, request: HttpRequest) -> HttpResponse:
        for tried in range(TRIES - 1):
            try:
                return await self._transport.send(request)
            except UnavailableError:
                await self._clock.sleep(RETRY_PAUSE_S * 2**tried)
        return await self._transport.send(request)


def _reasons(problem: dict[str, Any]) -> list[str]:
    errors = problem.get("errors")
    listed = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    return [f"{error.get('pointer') or 'the body'}: {error.get('reason')}" for error in listed]


def _answer(response: HttpResponse) -> RequestAnswer:
    document = _document(response)
    if not isinstance(document.get("request_id"), str) or not isinstance(document.get("status"), str):
        raise UnavailableError("the gateway's answer can't be read")
    return cast("RequestAnswer", {"answer": None, "parts": [], **document})


def _document(response: HttpResponse) -> dict[str, Any]:
    try:
        document = json.loads(response.body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _retry_after(response: HttpResponse) -> int | None:
    value = response.headers.get("retry-after", "")
    return int(value) if value.isdecimal() else None
