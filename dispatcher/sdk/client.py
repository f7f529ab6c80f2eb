"""A caller's way in: posts chat messages and reads answers.

    async with Client("http://127.0.0.1:8080", key="ard_…") as client:
        answer = await client.chat("Where is order 2025103101?", user_id="u1001")
        print(answer["answer"])

What comes back is the gateway's JSON, as plain dictionaries.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from types import TracebackType
from typing import Any, ClassVar, Self, Unpack, cast
from urllib.parse import quote, urlencode

from dispatcher.backoff import doubled
from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import DispatcherError, UnavailableError
from dispatcher.identifiers import new_id
from dispatcher.sdk.client_stream import SILENCE_S, Event, Following, RefusedResponseError
from dispatcher.sdk.direct_calls import DirectCalls, DirectRules
from dispatcher.sdk.direct_task import Lost
from dispatcher.sdk.known_routes import Wish
from dispatcher.sdk.request_answer import ChatOptions, RequestAnswer, RouteOptions, StreamOptions
from dispatcher.sdk.transport import HttpRequest, HttpResponse, HttpTransport, NotReachedError, Transport

TRIES = 3
RETRY_PAUSE_S = 0.2
"""Before the second try; doubles."""
DEFAULT_WAIT_S = 30.0
_ROUND_TRIP_S = 10.0


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
    Lost connections are tried again, safely: with the same idempotency key. With `fallback`, `chat`
    may ask agents that it knows of when no gateway is there.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        fallback: DirectRules | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._transport = transport or HttpTransport(url)
        self._clock = clock or SystemClock()
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._direct = None if fallback is None else DirectCalls(fallback, self._ask_route, self._clock)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._transport)
        if self._direct is not None:
            await self._stack.enter_async_context(self._direct.opened())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def chat(self, message: str, **options: Unpack[ChatOptions]) -> RequestAnswer:
        """Post a message and wait for its answer, at most `wait_s` seconds (30 by default).

        Raises `OutcomeUnknownError` where an agent was asked past the gateway and may have done it:
        do not ask again before you know.
        """
        body = dict(options)
        own_key = body.pop("idempotency_key", None)
        key = str(own_key or new_id())
        wait_s = options.get("wait_s", DEFAULT_WAIT_S)
        request = self._post("/v1/chat", {"message": message, **body}, wait_s, {"Idempotency-Key": key})
        try:
            response = await self._send(request)
        except UnavailableError as error:
            # A key that the caller chose may have been accepted in an earlier call.
            surely = isinstance(error, NotReachedError) and not own_key
            lost = Lost(message=message, options=options, key=key, surely=surely, wait_s=wait_s)
            answer = None if self._direct is None else await self._direct.answer(lost)
            if answer is None:
                raise
            return answer
        if self._direct is not None:
            self._direct.used(options)
        return _answer(response)

    async def stream(self, message: str, **options: Unpack[StreamOptions]) -> AsyncGenerator[Event]:
        """Post a message and yield what happens to it, up to and with its `answer`.

        A lost connection is taken up again after the last event that was seen; no agent is asked in a
        gateway's place. Close the generator (`contextlib.aclosing`) to stop listening; the request
        goes on, `cancel` ends it.
        """
        body = dict(options)
        key = body.pop("idempotency_key", None) or new_id()
        post = self._post("/v1/chat", {"message": message, **body}, SILENCE_S, {"Idempotency-Key": str(key)})
        following = Following(post=post, headers=self._headers)
        failures = 0
        while not following.has_ended:
            try:
                async with aclosing(following.events(self._transport)) as events:
                    async for event in events:
                        failures = 0
                        yield event
            except RefusedResponseError as error:
                raise _refusal(error.response) from None
            except UnavailableError:
                failures += 1
                if failures >= TRIES:
                    raise
                await self._clock.sleep(doubled(RETRY_PAUSE_S, failures))

    async def cancel(self, request_id: str) -> RequestAnswer:
        """Cancel what has not ended of a request; agents at work on it are told to stop.

        Returns the request as it stands. One that has ended stays as it is.
        """
        path = f"/v1/requests/{quote(request_id, safe='')}"
        response = await self._send(
            HttpRequest(method="DELETE", path=path, headers=self._headers, seconds=_ROUND_TRIP_S)
        )
        return _answer(response)

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

    async def candidates(self, capability: str, *, environment: str | None = None) -> dict[str, Any]:
        """Who would take work of the capability now, best first; with `fallback` it is remembered.

        `CallError` with the code `not_found` where the capability is unknown or not granted.
        """
        wish = Wish(capability=capability, environment=environment)
        return await (self._ask_route(wish) if self._direct is None else self._direct.fetch(wish))

    async def direct_keys(self, agent_id: str) -> dict[str, Any]:
        """The agent's keys for direct calls, for `DirectGate.renew`; needs the agent's own key."""
        return _document(await self._send(self._get(f"/v1/agents/{quote(agent_id, safe='')}/direct-keys")))

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

    async def dead_letters(self, **wanted: str | int | bool) -> list[dict[str, Any]]:
        """Work that ended without success, newest first; needs an admin's key.

        `wanted` may hold `cause`, `agent_id`, `capability`, `retried` (false: only what nobody
        retried) and `limit`.
        """
        query = urlencode({name: str(value).lower() for name, value in wanted.items()})
        document = _document(await self._send(self._get(f"/v1/dead?{query}")))
        letters: list[dict[str, Any]] = document.get("dead_letters", [])
        return letters

    async def dead_letter(self, dead_id: str) -> dict[str, Any]:
        """One dead letter with its attempts; `CallError` with the code `not_found` where there is none."""
        return _document(await self._send(self._get(f"/v1/dead/{quote(dead_id, safe='')}")))

    async def retry(self, dead_id: str, *, agent_id: str | None = None) -> str:
        """Have a dead task done again under its old idempotency key; the id of the new request.

        `CallError` with the code `already_retried` where another call did so before.
        """
        path = f"/v1/dead/{quote(dead_id, safe='')}/retry"
        # So that a try whose answer gets lost is known again.
        own = {"Idempotency-Key": str(new_id())}
        response = await self._send(self._post(path, {"agent_id": agent_id}, 0.0, own))
        return str(_document(response)["request_id"])

    async def handoffs(
        self, *, answered: bool = False, limit: int = 50, after: str | None = None
    ) -> dict[str, Any]:
        """A page of parts that wait for a person, the oldest first, or that people answered.

        `{handoffs, more}`; where there are `more`, `after` is the last `task_id` of this page. Needs an
        admin's key.
        """
        behind = {} if after is None else {"after": after}
        query = urlencode({"answered": str(answered).lower(), "limit": limit, **behind})
        document = _document(await self._send(self._get(f"/v1/handoffs?{query}")))
        return {"handoffs": [], "more": False, **document}

    async def answer_handoff(self, task_id: str, answer: str) -> dict[str, Any]:
        """Answer a part in an agent's place; its caller sees it with the request.

        `CallError` with the code `already_answered` where it has another answer, `not_found` without it.
        """
        path = f"/v1/handoffs/{quote(task_id, safe='')}/answer"
        return _document(await self._send(self._post(path, {"answer": answer}, 0.0, {})))

    async def try_declaration(
        self, declaration: dict[str, Any], texts: Sequence[str], *, agent_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Where an agent with this declaration would rank for each text; nothing is registered."""
        body = {"declaration": declaration, "texts": list(texts), "agent_id": agent_id}
        response = await self._send(self._post("/v1/agents/try", body, 0.0, {}))
        rankings: list[dict[str, Any]] = _document(response).get("rankings", [])
        return rankings

    async def _ask_route(self, wish: Wish) -> dict[str, Any]:
        query = "" if wish.environment is None else "?" + urlencode({"environment": wish.environment})
        return _document(await self._send(self._get(f"/v1/route/{quote(wish.capability, safe='')}{query}")))

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
            raise _refusal(response)
        return response

    async def _exchange(self, request: HttpRequest) -> HttpResponse:
        """The response of the first try that brings one; `NotReachedError` where no try got through."""
        failure: UnavailableError | None = None
        for tried in range(TRIES):
            if failure is not None:
                await self._clock.sleep(doubled(RETRY_PAUSE_S, tried))
            try:
                return await self._transport.send(request)
            except NotReachedError as error:
                failure = failure or error
            except UnavailableError as error:
                failure = error
        raise failure or UnavailableError("nothing was tried")


def _refusal(response: HttpResponse) -> CallError:
    return CallError(_document(response), status=response.status, retry_after_s=_retry_after(response))


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
