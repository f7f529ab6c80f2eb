"""Declarations are tried one after the other, and no more wait than a few."""

import asyncio
from dataclasses import replace

import httpx2
import pytest

from dispatcher.errors import UnavailableError
from dispatcher.gateway.app import create_app
from dispatcher.gateway.trial import WAITING, Turns
from tests.gateway.stubs import ORDER_AGENT, register_body


class HeldTrial:
    """Answers once it is let; knows how many of its calls were under way at once."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.calls = 0
        self.at_once = 0
        self._inside = 0

    async def __call__(self, _agent_id, _declaration, _texts):
        self.calls += 1
        self._inside += 1
        self.at_once = max(self.at_once, self._inside)
        await self.let.wait()
        self._inside -= 1
        return []


@pytest.fixture
def held():
    return HeldTrial()


@pytest.fixture
async def client(api, held):
    app = create_app(replace(api.parts, trial=held))
    transport = httpx2.ASGITransport(app=app)
    headers = {"Authorization": f"Bearer {ORDER_AGENT}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://dispatcher", headers=headers
    ) as client:
        yield client


async def test_one_is_tried_a_few_wait_and_the_next_is_refused(client, held):
    body = {"declaration": register_body()["declaration"], "texts": ["hi"]}
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        tasks = [group.create_task(client.post("/v1/agents/try", json=body)) for _ in range(WAITING + 2)]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        refused = done.pop().result()
        held.let.set()
    answers = [task.result() for task in tasks]

    assert (refused.status_code, refused.json()["code"]) == (503, "too_many_trials")
    assert refused.headers["Retry-After"] == "1"
    assert sorted(answer.status_code for answer in answers) == [*[200] * (WAITING + 1), 503]
    assert (held.calls, held.at_once) == (WAITING + 1, 1)


async def test_a_trial_that_fails_gives_its_turn_back():
    turns = Turns()

    for _ in range(WAITING + 2):
        with pytest.raises(UnavailableError):
            async with turns.taken():
                raise UnavailableError("the encoder failed")
