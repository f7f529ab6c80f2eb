"""Cancelling over HTTP: the call is cut, and the agent is told, whether or not it understands."""

import asyncio
import logging
import socket

import pytest
from aiohttp import web

from dispatcher.channel.http_call import CallRules
from dispatcher.channel.http_policy import AddressPolicy
from dispatcher.clock import SystemClock
from dispatcher.errors import RefusedError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.frames import CancelFrame, ResultFrame
from tests.conformance.channel_world import DEADLINE_S, ORDER, task
from tests.conformance.http_world import (
    Agent,
    RawServer,
    at_once,
    channel_to,
    gladly,
    sending,
    taking,
)

CANCEL = CancelFrame(request_id="request", task_id="task", agent_id=ORDER, reason="caller")


def cancel_of(task_id):
    return CANCEL.model_copy(update={"task_id": task_id})


async def later(_task):
    return web.Response(status=202)


class Holding:
    """Holds answers back until it is let go."""

    def __init__(self):
        self.let_go = asyncio.Event()

    async def answer(self, frame):
        if frame.payload.text != "next":
            await self.let_go.wait()
        return await at_once(frame)

    async def on_cancel(self, task_id):
        await self.let_go.wait()
        return await gladly(task_id)


async def test_an_agent_that_took_the_task_for_later_is_told():
    agent = Agent(later)
    call = CallRules(credentials={ORDER: "a-secret-of-order"})
    async with agent.serving() as endpoint, channel_to(f"{endpoint}?shop=7", call=call) as world:
        await world.channel.send(ORDER, task("later"))
        await agent.arrived.wait()

        await world.channel.cancel(ORDER, CANCEL)
        path, headers = await agent.next_cancel()

    assert path == "/tasks/task?shop=7"
    assert (headers["Authorization"], headers["X-Request-Id"]) == ("Bearer a-secret-of-order", "request")
    assert (len(agent.posts), world.received.results) == (1, [])


async def test_an_agent_is_told_of_a_call_that_goes_on_elsewhere():
    agent = Agent()
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.cancel(ORDER, CANCEL)

        path, _ = await agent.next_cancel()

    assert path == "/tasks/task"


async def test_the_call_of_a_cancelled_task_is_hung_up_on_and_no_other():
    holding = Holding()
    agent = Agent(holding.answer)
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.send(ORDER, task("cancelled"))
        await world.channel.send(ORDER, task("other").model_copy(update={"task_id": "other"}))
        await world.channel.cancel(ORDER, CANCEL)
        path, _ = await agent.next_cancel()
        holding.let_go.set()

        assert (await world.result()).result.text == "other"
    assert (path, len(world.received.results)) == ("/tasks/task", 1)


@pytest.mark.parametrize("on_cancel", [gladly, None])
async def test_a_cancelled_call_gives_its_place_back_and_is_no_failure_of_the_agent(on_cancel):
    holding = Holding()
    agent = Agent(holding.answer, on_cancel)
    async with agent.serving() as endpoint, channel_to(endpoint, per_agent=1) as world:
        await world.channel.send(ORDER, task("held"))
        with pytest.raises(RefusedError):
            await world.channel.send(ORDER, task("no place"))
        await world.channel.cancel(ORDER, CANCEL)
        async with asyncio.timeout(DEADLINE_S):
            await _sent_as_soon_as_there_is_a_place(world.channel, task("next"))
        await world.result()
        holding.let_go.set()

    assert [ResultFrame.model_validate_json(body).result.text for body in world.received.results] == ["next"]


@pytest.mark.parametrize("status", [307, 400, 401, 404, 405, 429, 500, 501, 503])
async def test_whatever_the_agent_answers_nothing_follows(status):
    async def refuse(_task_id):
        headers = {"Retry-After": "60", "Location": "/tasks"}
        return web.Response(status=status, headers=headers, text="x" * 2**18)

    agent = Agent(on_cancel=refuse)
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.cancel(ORDER, CANCEL)
        await agent.next_cancel()
        await world.channel.send(ORDER, task("hello"))

        assert (await world.result()).result.text == "hello"
    assert (len(agent.posts), len(world.received.results), agent.cancels.qsize()) == (1, 1, 0)


async def test_an_agent_that_does_not_know_cancellations_is_not_disturbed(caplog):
    agent = Agent(later, on_cancel=None)
    with caplog.at_level(logging.INFO, "dispatcher.channel.http_cancel"):
        async with agent.serving() as endpoint, channel_to(endpoint) as world:
            await world.channel.send(ORDER, task("later"))
            await agent.arrived.wait()
            await world.channel.cancel(ORDER, CANCEL)

    (status,) = [record.status for record in caplog.records if record.message == "http.cancel_told"]
    assert status == 404
    assert (len(agent.posts), world.received.results) == (1, [])


async def test_nobody_waits_for_an_agent_that_is_told():
    holding = Holding()
    agent = Agent(on_cancel=holding.on_cancel)
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        async with asyncio.timeout(DEADLINE_S):
            await world.channel.cancel(ORDER, CANCEL)
            await agent.next_cancel()
            await world.channel.send(ORDER, task("next"))
            await world.result()
        holding.let_go.set()


async def test_beyond_its_bound_an_agent_is_told_nothing_and_others_are():
    holding = Holding()
    agent = Agent(on_cancel=holding.on_cancel)
    async with agent.serving() as endpoint, channel_to(endpoint, per_agent=2) as world:
        for number in range(4):
            await world.channel.cancel(ORDER, cancel_of(f"t{number}"))
        await world.channel.cancel(AgentId("faq"), cancel_of("another"))
        told = {(await agent.next_cancel())[0] for _ in range(3)}
        holding.let_go.set()

    assert told == {"/tasks/t0", "/tasks/t1", "/tasks/another"}
    assert agent.cancels.empty()


async def test_a_silent_agent_gives_its_places_back():
    server = RawServer(sending(b"", pause_s=3))
    times = taking(read_s=0.05)
    async with server.serving() as endpoint, channel_to(endpoint, call=times, per_agent=1) as world:
        async with asyncio.timeout(DEADLINE_S):
            while server.connections < 2:
                await world.channel.cancel(ORDER, CANCEL)
                await SystemClock().sleep(0.01)


async def test_a_closing_channel_waits_for_a_silent_agent_no_longer_than_for_calls():
    server, in_time = RawServer(sending(b"", pause_s=3)), asyncio.timeout(2)
    async with server.serving() as endpoint, in_time, channel_to(endpoint, close_within_s=0.1) as world:
        await world.channel.cancel(ORDER, CANCEL)


async def test_cancelling_never_raises():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}/tasks"
    for endpoint in (None, "no address", nobody):
        async with channel_to(endpoint) as world:
            await world.channel.cancel(ORDER, CANCEL)
        await world.channel.cancel(ORDER, CANCEL)
        assert world.received.results == []


async def test_a_forbidden_endpoint_is_not_told():
    server = RawServer(sending(b""))
    async with server.serving() as endpoint, channel_to(endpoint, policy=AddressPolicy()) as world:
        await world.channel.cancel(ORDER, CANCEL)

    assert server.connections == 0


async def _sent_as_soon_as_there_is_a_place(channel, frame):
    """A call that was cut ends a little later."""
    while True:
        try:
            return await channel.send(ORDER, frame)
        except RefusedError:
            await SystemClock().sleep(0.01)
