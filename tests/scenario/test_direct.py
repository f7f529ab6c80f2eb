"""An agent over HTTP in a process of its own: it outlives its only gateway, and stops when it is told to."""

import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.errors import UnavailableError
from dispatcher.sdk import Client, DirectRules
from tests.scenario.program import Program, dispatcher

CREDENTIAL = "only-the-dispatcher-has-this"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Program]:
    variables = {
        "DISPATCHER_DATA_DIR": str(tmp_path / "data"),
        "DISPATCHER_HTTP__CREDENTIALS": json.dumps({"teller": CREDENTIAL}),
    }
    with Program(*dispatcher("run", "--development", "--port", "0"), variables=variables) as program:
        yield program


@pytest.fixture
def url(gateway: Program) -> str:
    return gateway.wait_for(r"listening on (http://\S+)")[1]


@pytest.fixture
def teller(url: str, tmp_path: Path) -> Iterator[Program]:
    command = (sys.executable, "-m", "tests.scenario.teller", url, CREDENTIAL, str(tmp_path / "inbox"))
    with Program(*command) as program:
        program.wait_for("serving http://")
        yield program


async def test_a_killed_gateway_leaves_its_agents_to_its_callers(gateway, url, teller) -> None:
    async with Client(url, fallback=DirectRules()) as client:
        usual = await client.chat("hello", capability="fortune.tell", user_id="u1")
        await client.candidates("fortune.tell")
        await asyncio.to_thread(gateway.stop, signal.SIGKILL)

        direct = await client.chat("hello", capability="fortune.tell", user_id="u2")
        teller.send(signal.SIGKILL)
        await asyncio.to_thread(teller.wait)
        with pytest.raises(UnavailableError):
            await client.chat("hello", capability="fortune.tell", user_id="u3")

    assert (usual["status"], usual.get("direct")) == ("completed", None)
    assert (direct["status"], direct["direct"]) == ("completed", True)
    assert [one["answer"] for one in (usual, direct)] == [
        f"{teller.pid}: {user} will travel" for user in ("u1", "u2")
    ]


async def test_a_cancelled_request_stops_its_handler(url, teller) -> None:
    async with Client(url) as client:
        open_still = await client.chat("hello", capability="fortune.brood", wait_s=0.0)
        await asyncio.to_thread(teller.wait_for, "^brooding")

        cancelled = await client.cancel(open_still["request_id"])
        await asyncio.to_thread(teller.wait_for, "stopped brooding")

    assert (open_still["status"], cancelled["status"]) == ("open", "cancelled")
