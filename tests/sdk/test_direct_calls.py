"""Whom a client calls when its gateway is gone, in which order, and when it stops."""

import asyncio
from typing import Any, cast

import pytest

from dispatcher.errors import ConfigurationError, OutcomeUnknownError, RequestError, UnavailableError
from dispatcher.identifiers import CallerId, Capability, callers_key
from dispatcher.protocol.frames import ResultBody, ResultFrame, ResultStatus, TaskFrame
from dispatcher.sdk.direct_calls import DirectCalls, DirectRules
from dispatcher.sdk.direct_task import Lost
from dispatcher.sdk.known_routes import Wish
from dispatcher.sdk.request_answer import ChatOptions
from dispatcher.sdk.transport import HttpRequest, HttpResponse, NotReachedError, Transport

QUERY = Wish(capability="order.query")
WAIT_S = 5


class HeldClock:
    """Time that moves only when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class Agents(Transport):
    """Answers by endpoint: a status, an exception, or the status of a result."""

    def __init__(self, **answers: int | Exception | ResultStatus) -> None:
        self.answers = answers
        self.called: list[HttpRequest] = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, error, trace):
        pass

    async def send(self, request):
        self.called.append(request)
        answer = self.answers[request.path.removeprefix("http://")]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, ResultStatus):
            return HttpResponse(status=200, headers={}, body=self._result(request, answer))
        return HttpResponse(status=answer, headers={}, body=b"")

    def stream(self, request):
        raise NotImplementedError

    def _result(self, request: HttpRequest, status: ResultStatus) -> bytes:
        task = TaskFrame.model_validate_json(request.body)
        frame = ResultFrame(
            request_id=task.request_id,
            task_id=task.task_id,
            attempt=task.attempt,
            token=task.token,
            instance_id="one",
            status=status,
            result=ResultBody(text=f"by {task.agent_id}"),
            can_retry=status is ResultStatus.ERROR,
        )
        return frame.model_dump_json().encode()

    @property
    def tasks(self) -> list[TaskFrame]:
        return [TaskFrame.model_validate_json(request.body) for request in self.called]


def route(*agents: str, idempotent: bool = True, **more: Any) -> dict[str, Any]:
    candidates = [
        {
            "agent_id": name,
            "score": 0.9,
            "throttled": False,
            "idempotent": idempotent,
            "timeout_ms": 30_000,
            "direct": {"endpoint": f"http://{name}", "ticket": f"7.{name}"},
            "news": "ignored",
        }
        for name in agents
    ]
    return {"capability": "order.query", "caller": "alice", "inputs": [], "candidates": candidates, **more}


def lost(*, surely: bool = True, wait_s: float = 30.0, **options: Any) -> Lost:
    chosen: dict[str, Any] = {"capability": "order.query", **options}
    return Lost(message="hello", options=cast("ChatOptions", chosen), key="k1", surely=surely, wait_s=wait_s)


def calls_to(
    agents: Agents, document: dict[str, Any] | None = None, rules: DirectRules | None = None
) -> tuple[DirectCalls, HeldClock]:
    async def ask(wish: Wish) -> dict[str, Any]:
        raise UnavailableError("gone")

    clock = HeldClock()
    calls = DirectCalls(rules or DirectRules(), ask, clock, agents=agents)
    if document is not None:
        calls.learn(QUERY, document)
    return calls, clock


async def test_the_best_agent_gets_the_task_with_its_ticket_and_the_dispatchers_own_key():
    agents = Agents(one=ResultStatus.SUCCESS, two=ResultStatus.SUCCESS)
    calls, _ = calls_to(agents, route("one", "two", inputs=["order", "missing"]))

    answer = await calls.answer(lost(context={"order": "A1", "else": 1}, user_id="u1", language="zh"))

    (task,) = agents.tasks
    assert answer is not None
    assert (answer["answer"], answer["direct"]) == ("by one", True)
    assert agents.called[0].headers["Direct-Ticket"] == "7.one"
    assert task.idempotency_key == callers_key(CallerId("alice"), Capability("order.query"), "k1", "hello")
    assert task.payload.input == {"order": "A1"}
    assert (task.context.caller, task.context.user_id, task.context.language) == ("alice", "u1", "zh")
    assert task.context.data == {"order": "A1", "else": 1}
    assert (task.attempt, task.budget_ms, task.lease_ms) == (1, 30_000, None)


@pytest.mark.parametrize("failure", [NotReachedError("refused"), 403, 429, ResultStatus.BUSY])
async def test_an_agent_that_surely_did_not_run_it_is_followed_by_the_next(failure):
    agents = Agents(one=failure, two=ResultStatus.SUCCESS)
    calls, _ = calls_to(agents, route("one", "two", idempotent=False))

    answer = await calls.answer(lost())

    assert answer is not None
    assert (answer["answer"], answer["parts"][0]["attempts"]) == ("by two", 2)
    assert len({task.idempotency_key for task in agents.tasks}) == 1


@pytest.mark.parametrize("failure", [UnavailableError("cut"), 500, 202])
async def test_what_may_have_run_and_may_not_run_twice_ends_there(failure):
    agents = Agents(one=failure, two=ResultStatus.SUCCESS)
    calls, _ = calls_to(agents, route("one", "two", idempotent=False))

    with pytest.raises(OutcomeUnknownError):
        await calls.answer(lost())

    assert len(agents.called) == 1


@pytest.mark.parametrize("failure", [UnavailableError("cut"), 500, ResultStatus.ERROR])
async def test_what_may_run_again_is_tried_elsewhere(failure):
    agents = Agents(one=failure, two=ResultStatus.SUCCESS)
    calls, _ = calls_to(agents, route("one", "two"))

    answer = await calls.answer(lost())

    assert answer is not None
    assert answer["answer"] == "by two"


async def test_a_failure_that_nobody_makes_good_is_the_answer():
    agents = Agents(one=ResultStatus.ERROR, two=NotReachedError("refused"))
    calls, _ = calls_to(agents, route("one", "two"))

    answer = await calls.answer(lost())

    assert answer is not None
    assert (answer["status"], answer["parts"][0]["agent_id"]) == ("failed", "one")


async def test_a_failure_of_what_may_not_run_twice_is_the_answer():
    agents = Agents(one=ResultStatus.ERROR, two=ResultStatus.SUCCESS)
    calls, _ = calls_to(agents, route("one", "two", idempotent=False))

    answer = await calls.answer(lost())

    assert answer is not None
    assert (answer["status"], len(agents.called)) == ("failed", 1)


async def test_at_most_three_agents_are_called():
    agents = Agents(**{name: NotReachedError("refused") for name in ("one", "two", "three", "four")})
    calls, _ = calls_to(agents, route("one", "two", "three", "four"))

    assert await calls.answer(lost()) is None

    assert [task.attempt for task in agents.tasks] == [1, 2, 3]


@pytest.mark.parametrize("attempts", [0, 4])
def test_no_rules_allow_more(attempts):
    with pytest.raises(ConfigurationError):
        DirectRules(attempts=attempts)


async def test_where_it_may_have_been_accepted_only_what_may_run_again_is_called():
    agents = Agents(one=ResultStatus.SUCCESS)
    once, _ = calls_to(agents, route("one", idempotent=False))
    again, _ = calls_to(agents, route("one"))

    assert await once.answer(lost(surely=False)) is None
    assert await again.answer(lost(surely=False)) is not None


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        route("one", candidates=[]),
        {**route("one"), "candidates": [{**route("one")["candidates"][0], "direct": None}]},
        {
            **route("one"),
            "candidates": [{**route("one")["candidates"][0], "direct": {"endpoint": "ftp://x"}}],
        },
    ],
)
async def test_without_a_way_nobody_is_called(document):
    agents = Agents(one=ResultStatus.SUCCESS)
    calls, _ = calls_to(agents, document)

    assert (await calls.answer(lost()), agents.called) == (None, [])


async def test_another_environments_agents_are_not_called():
    agents = Agents(one=ResultStatus.SUCCESS)
    calls, _ = calls_to(agents, route("one"))

    assert (await calls.answer(lost(environment="staging")), agents.called) == (None, [])


async def test_what_is_remembered_too_long_is_used_no_more():
    agents = Agents(one=ResultStatus.SUCCESS)
    calls, clock = calls_to(agents, route("one"))
    clock.now += 3601

    assert (await calls.answer(lost()), agents.called) == (None, [])


async def test_a_caller_that_does_not_wait_gets_no_direct_answer():
    agents = Agents(one=ResultStatus.SUCCESS)
    calls, _ = calls_to(agents, route("one"))

    assert (await calls.answer(lost(wait_s=0)), agents.called) == (None, [])


async def test_a_task_gets_no_more_time_than_its_caller_has():
    agents = Agents(one=ResultStatus.SUCCESS)
    calls, _ = calls_to(agents, route("one"))

    await calls.answer(lost(wait_s=2.5))

    assert (agents.tasks[0].budget_ms, agents.called[0].seconds) == (2500, 3.5)


async def test_what_was_used_is_asked_for_in_the_background():
    asked: asyncio.Queue[Wish] = asyncio.Queue()

    async def ask(wish: Wish) -> dict[str, Any]:
        asked.put_nowait(wish)
        return route("one", capability=wish.capability)

    agents = Agents(one=ResultStatus.SUCCESS)
    calls = DirectCalls(DirectRules(), ask, HeldClock(), agents=agents)
    async with asyncio.timeout(WAIT_S), calls.opened():
        calls.used(ChatOptions(capability="order.query", environment="staging"))
        calls.used(ChatOptions(user_id="u1"))
        first = await asked.get()
        calls.used(ChatOptions(capability="order.query"))
        second = await asked.get()
        calls.used(ChatOptions(capability="order.query"))

    assert (first, second) == (Wish(capability="order.query", environment="staging"), QUERY)
    assert asked.empty()
    assert await calls.answer(lost(environment="staging")) is not None


async def test_what_the_gateway_denies_is_forgotten():
    asked = asyncio.Event()

    async def ask(wish: Wish) -> dict[str, Any]:
        asked.set()
        raise RequestError("no", code="not_found")

    agents = Agents(one=ResultStatus.SUCCESS)
    clock = HeldClock()
    calls = DirectCalls(DirectRules(), ask, clock, agents=agents)
    calls.learn(QUERY, route("one"))
    clock.now += 61
    async with asyncio.timeout(WAIT_S), calls.opened():
        await asked.wait()

    assert (await calls.answer(lost()), agents.called) == (None, [])


async def test_a_gateway_that_is_gone_changes_nothing_of_what_is_remembered():
    asked: list[Wish] = []
    is_asked = asyncio.Event()

    async def ask(wish: Wish) -> dict[str, Any]:
        asked.append(wish)
        is_asked.set()
        raise UnavailableError("gone")

    agents = Agents(one=ResultStatus.SUCCESS)
    clock = HeldClock()
    calls = DirectCalls(DirectRules(), ask, clock, agents=agents)
    for wish in (QUERY, Wish(capability="order.cancel")):
        calls.learn(wish, route("one", capability=wish.capability))
    clock.now += 61
    async with asyncio.timeout(WAIT_S), calls.opened():
        await is_asked.wait()

    assert asked == [QUERY]
    assert await calls.answer(lost()) is not None


def test_tickets_are_not_shown():
    calls, _ = calls_to(Agents(), route("one"))

    assert "7.one" not in repr(calls._known.find(QUERY, 60, 1000.0))
