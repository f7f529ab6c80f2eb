"""Two gateways and two agents as processes of their own, on RabbitMQ and PostgreSQL; some of them die."""

import asyncio
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dispatcher.clock import SystemClock
from tests.scenario.crew import Crew
from tests.scenario.program import Program, dispatcher, run

MESSAGE = "我上周买的手机怎么还没发货？另外现在有没有优惠？"
BODY = {"message": MESSAGE, "user_id": "u1001"}
POSTS = 20
START_S = 60.0
"""In which all programs are there, started at once on a busy machine."""
pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("replicas"),  # started once, not once per process
]


@dataclass
class Fleet:
    """The processes and a client."""

    first: Program
    second: Program
    urls: tuple[str, str]
    agents: dict[str, Program]
    client: httpx2.AsyncClient

    async def routes(self, url: str) -> None:
        """Wait until the gateway at `url` has an agent for both parts."""
        async with asyncio.timeout(60):
            while (await self.client.post(f"{url}/v1/chat", json=BODY)).json()["status"] != "completed":
                await SystemClock().sleep(0.05)

    async def ended(self, url: str, request_id: str) -> dict[str, Any]:
        """The request as the gateway at `url` tells it, once it has ended."""
        async with asyncio.timeout(60):
            while True:
                reply = await self.client.get(f"{url}/v1/requests/{request_id}")
                document: dict[str, Any] = reply.json()
                if document.get("status") != "open":
                    return document
                await SystemClock().sleep(0.05)


@pytest.fixture(scope="module")
def crew(module_postgres_url: str, amqp_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    prefix, folder = f"fleet-{secrets.token_hex(4)}", tmp_path_factory.mktemp("inboxes")
    variables = {
        "DISPATCHER_STORE__URL": module_postgres_url,
        "DISPATCHER_BROKER__URL": amqp_url,
        "DISPATCHER_BROKER__PREFIX": prefix,
        "DISPATCHER_DELIVERY__CLAIM_S": "6",
    }
    assert run(*dispatcher("upgrade"), variables=variables).returncode == 0
    command = dispatcher("run", "--development", "--port", "0")
    gateways = dict.fromkeys(("first", "second"), partial(Program, *command, variables=variables))
    agents = {name: partial(_agent, name, amqp_url, prefix, folder) for name in ("order", "promotion")}
    crew = Crew({**gateways, **agents})
    try:
        yield crew
    finally:
        crew.close()


@pytest.fixture
async def fleet(crew: Crew) -> AsyncIterator[Fleet]:
    programs = crew.whole()
    first, second = programs["first"], programs["second"]
    urls = [gateway.wait_for(r"listening on (http://\S+)", START_S)[1] for gateway in (first, second)]
    agents = {name: programs[name] for name in ("order", "promotion")}
    for agent in agents.values():
        agent.wait_for("registration.granted", START_S)
    async with httpx2.AsyncClient(timeout=60) as client:
        fleet = Fleet(first, second, (urls[0], urls[1]), agents, client)
        # A replica routes to an agent that another one registered once it has heard of it.
        for url in urls:
            await fleet.routes(url)
        yield fleet


def _agent(name: str, amqp_url: str, prefix: str, folder: Path) -> Program:
    command = (sys.executable, "-m", f"agents.{name}", "--broker", amqp_url, "--prefix", prefix)
    return Program(*command, "--inbox", f"sqlite:{folder / name}.db", "--instance", "one")


async def test_a_waiting_client_gets_its_answer_whichever_gateway_collects_it(fleet: Fleet) -> None:
    posts = [fleet.client.post(f"{fleet.urls[n % 2]}/v1/chat", json=BODY) for n in range(POSTS)]

    replies = [reply.json() for reply in await asyncio.gather(*posts)]

    assert [reply["status"] for reply in replies] == ["completed"] * POSTS
    assert all(part["attempts"] == 1 for reply in replies for part in reply["parts"])


async def test_what_a_killed_gateway_accepted_is_finished_by_the_other(fleet: Fleet) -> None:
    headers = {"Prefer": "respond-async"}
    posts = [fleet.client.post(f"{fleet.urls[0]}/v1/chat", json=BODY, headers=headers) for _ in range(POSTS)]
    replies = await asyncio.gather(*posts)
    fleet.first.send(signal.SIGKILL)
    fleet.first.wait()

    assert {reply.status_code for reply in replies} <= {200, 202}
    ended = [await fleet.ended(fleet.urls[1], reply.json()["request_id"]) for reply in replies]
    assert [document["status"] for document in ended] == ["completed"] * POSTS


@pytest.mark.last
async def test_a_terminated_agent_drains_and_its_successor_goes_on(fleet: Fleet) -> None:
    headers = {"Prefer": "respond-async"}
    posts = [
        fleet.client.post(f"{fleet.urls[n % 2]}/v1/chat", json=BODY, headers=headers) for n in range(POSTS)
    ]
    replies = await asyncio.gather(*posts)

    assert fleet.agents["order"].stop(signal.SIGTERM) == 0
    with Program(*fleet.agents["order"].command) as successor:
        successor.wait_for("registration.granted", START_S)
        ended = [await fleet.ended(fleet.urls[0], reply.json()["request_id"]) for reply in replies]
        after = (await fleet.client.post(f"{fleet.urls[1]}/v1/chat", json=BODY)).json()

    assert {document["status"] for document in ended} <= {"completed", "partial"}
    assert after["status"] == "completed"
    assert fleet.first.stop() == 0
    assert "Traceback" not in fleet.first.text + fleet.second.text
