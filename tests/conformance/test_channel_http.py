"""What the HTTP channel does with agents of every kind; all of them on loopback."""

import asyncio
import socket
from contextlib import ExitStack, contextmanager

import pytest
from aiohttp import web

from dispatcher.channel.http_call import CallRules
from dispatcher.channel.http_policy import AddressPolicy
from dispatcher.errors import OutcomeUnknownError, RefusedError, TooLargeError, UnroutableError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.frames import ResultStatus, TaskFrame
from dispatcher.protocol.link import Settlement
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from tests.conformance.channel_world import DEADLINE_S, ORDER, RESULT_TRIES, task
from tests.conformance.http_world import Agent, RawServer, at_once, channel_to, result_of, sending, taking


def answering(**response):
    async def answer(_task):
        return web.Response(**response)

    return answer


async def test_a_task_is_delivered_once_and_its_reply_is_the_result():
    agent = Agent()
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        sent = task("上周买的手机").model_copy(update={"traceparent": "00-ab-cd-01"})

        await world.channel.send(ORDER, sent)
        result = await world.result()

    assert (result.status, result.result.text, result.token) == (
        ResultStatus.SUCCESS,
        "上周买的手机",
        sent.token,
    )
    ((posted, headers),) = agent.posts
    assert posted == sent
    assert (headers["Idempotency-Key"], headers["X-Request-Id"]) == (sent.idempotency_key, sent.request_id)
    assert (headers["Traceparent"], headers["Accept-Encoding"]) == ("00-ab-cd-01", "identity")


async def test_a_send_returns_before_the_agent_answered():
    agent, may_answer = Agent(), asyncio.Event()

    async def answer(frame):
        await may_answer.wait()
        return await at_once(frame)

    agent.answer = answer
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.send(ORDER, task("slow"))
        assert not world.received.results
        may_answer.set()
        assert (await world.result()).result.text == "slow"


async def test_an_agent_that_takes_the_task_for_later_leaves_the_channel_without_a_result():
    agent = Agent(answering(status=202))
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.send(ORDER, task("later"))
        await agent.arrived.wait()

    assert not world.received.results


async def test_an_agent_may_know_the_caller_by_a_credential_of_its_own():
    agent, call = Agent(), CallRules(credentials={ORDER: "a-secret-of-order"})
    async with agent.serving() as endpoint, channel_to(endpoint, call=call) as world:
        for agent_id in (ORDER, AgentId("faq")):
            await world.channel.send(agent_id, task("hello", agent_id))
        await world.received.until(lambda: len(world.received.results) == 2)

    sent = {posted.agent_id: headers.get("Authorization") for posted, headers in agent.posts}
    assert sent == {"order": "Bearer a-secret-of-order", "faq": None}
    assert "a-secret" not in repr(call)


async def test_a_result_in_a_reply_is_offered_until_it_is_taken():
    agent = Agent()
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        world.received.answers.extend([Settlement.REQUEUE, ValueError("a fault of ours")])

        await world.channel.send(ORDER, task("hello"))

        await world.received.until(lambda: len(world.received.results) == 3)
    assert len(agent.posts) == 1


async def test_a_result_whose_handling_always_fails_is_given_up_and_harms_no_other():
    async with Agent().serving() as endpoint, channel_to(endpoint) as world:
        world.received.answers.extend([ValueError("a fault of ours")] * RESULT_TRIES)

        await world.channel.send(ORDER, task("poison"))
        await world.received.until(lambda: len(world.received.results) == RESULT_TRIES)
        await world.channel.send(ORDER, task("next"))

        await world.received.until(lambda: b"next" in world.received.results[-1])


async def test_an_agent_that_does_not_listen_gets_nothing():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}/tasks"
    async with channel_to(endpoint) as world:
        with pytest.raises(UnroutableError):
            await world.channel.send(ORDER, task("hello"))

    assert not world.received.results


async def test_an_agent_that_is_not_reached_soon_holds_no_sender_and_surely_did_not_start():
    with stuck_server() as endpoint:
        async with channel_to(endpoint, call=taking(connect_s=0.5), send_wait_s=0.05) as world:
            async with asyncio.timeout(0.4):
                await world.channel.send(ORDER, task("hello"))
            assert not world.received.results

            result = await world.result()
    assert (result.status, result.error_code) == (ResultStatus.BUSY, "unroutable")


async def test_an_agent_without_an_endpoint_gets_nothing():
    async with channel_to(None) as world:
        with pytest.raises(UnroutableError):
            await world.channel.send(ORDER, task("hello"))


async def test_a_forbidden_endpoint_is_not_connected_to():
    server = RawServer(sending(b""))
    async with server.serving() as endpoint, channel_to(endpoint, policy=AddressPolicy()) as world:
        with pytest.raises(UnroutableError) as refused:
            await world.channel.send(ORDER, task("hello"))

    assert (refused.value.error_code, server.connections) == ("endpoint_refused", 0)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_agent_is_left_alone_for_as_long_as_it_asked(status):
    agent = Agent(answering(status=status, headers={"Retry-After": "60"}))
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.send(ORDER, task("first"))
        result = await world.result()

        with pytest.raises(RefusedError) as refused:
            await world.channel.send(ORDER, task("second"))

    assert (result.status, refused.value.error_code, len(agent.posts)) == (ResultStatus.BUSY, "busy", 1)


async def test_one_that_says_busy_in_its_result_is_left_alone_for_as_long_as_it_asked():
    async def says_busy(task: TaskFrame) -> web.Response:
        frame = result_of(task).model_copy(update={"status": ResultStatus.BUSY})
        return web.Response(text=frame.model_dump_json(), headers={"Retry-After": "60"})

    agent = Agent(says_busy)
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.send(ORDER, task("first"))
        result = await world.result()

        with pytest.raises(RefusedError) as refused:
            await world.channel.send(ORDER, task("second"))

    assert (result.status, refused.value.error_code, len(agent.posts)) == (ResultStatus.BUSY, "busy", 1)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_refusal_is_not_told_of_a_task_that_may_run_from_an_earlier_sending(status):
    agent = Agent(answering(status=status, headers={"Retry-After": "0"}))
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.send(ORDER, task("sent before"), bound=True)
        await agent.arrived.wait()
        agent.answer = at_once
        await world.channel.send(ORDER, task("next"), bound=True)

        assert (await world.result()).result.text == "next"
    assert len(world.received.results) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_a_call_that_goes_on_while_its_task_is_sent_elsewhere_tells_no_refusal_either(status):
    agent, may_answer = Agent(), asyncio.Event()
    refuses = answering(status=status, headers={"Retry-After": "0"})

    async def answer(frame):
        await may_answer.wait()
        return await refuses(frame)

    agent.answer, sent = answer, task("first here")
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.send(ORDER, sent)
        await agent.arrived.wait()
        await world.channel.send(ORDER, sent, bound=True)
        agent.answer = at_once
        may_answer.set()
        await world.channel.send(ORDER, task("next"))

        assert (await world.result()).result.text == "next"
    assert (len(world.received.results), len(agent.posts)) == (1, 2)


async def test_that_an_agent_is_not_reached_is_not_told_of_a_task_that_may_run_from_before():
    with stuck_server() as endpoint:
        async with channel_to(endpoint, call=taking(connect_s=0.2), send_wait_s=0.05) as world:
            await world.channel.send(ORDER, task("sent before"), bound=True)
            await world.channel.send(ORDER, task("next"))

            result = await world.result()
    assert result.error_code == "unroutable"
    assert len(world.received.results) == 1


async def test_a_redirect_is_not_followed():
    other = RawServer(sending(b""))
    async with other.serving() as elsewhere:
        agent = Agent(answering(status=307, headers={"Location": elsewhere}))
        async with agent.serving() as endpoint, channel_to(endpoint) as world:
            await world.channel.send(ORDER, task("hello"))
            result = await world.result()

    assert (result.error_code, other.connections) == ("http_307", 0)


@pytest.mark.parametrize(("status", "can_retry"), [(404, False), (500, False), (502, True), (504, True)])
async def test_an_error_status_is_an_error_of_the_agent(status, can_retry):
    agent = Agent(answering(status=status, text="details"))
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        await world.channel.send(ORDER, task("hello"))
        result = await world.result()

    assert (result.error_code, result.can_retry) == (f"http_{status}", can_retry)


async def test_beyond_its_bound_an_agent_gets_no_more_calls():
    agent, may_answer = Agent(), asyncio.Event()

    async def answer(frame):
        await may_answer.wait()
        return await at_once(frame)

    agent.answer = answer
    async with agent.serving() as endpoint, channel_to(endpoint, per_agent=2) as world:
        for _ in range(2):
            await world.channel.send(ORDER, task("held"))

        with pytest.raises(RefusedError):
            await world.channel.send(ORDER, task("one too many"))

        may_answer.set()
        await world.received.until(lambda: len(world.received.results) == 2)


async def test_a_task_without_budget_or_of_too_many_bytes_is_not_sent():
    agent = Agent()
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        with pytest.raises(RefusedError) as refused:
            await world.channel.send(ORDER, task("late", budget_ms=0))
        with pytest.raises(TooLargeError):
            await world.channel.send(ORDER, task("x" * MAX_FRAME_BYTES))

    assert (refused.value.error_code, agent.posts) == ("expired", [])


async def test_it_closes_cleanly_under_load():
    agent = Agent()
    async with asyncio.timeout(DEADLINE_S), agent.serving() as endpoint:
        async with channel_to(endpoint) as world, asyncio.TaskGroup() as load:
            senders = [load.create_task(_send_for_ever(world.channel)) for _ in range(8)]
            await world.received.until(lambda: len(world.received.results) > 50)
            for sender in senders:
                sender.cancel()

        assert not world.channel.is_ready()
        with pytest.raises(OutcomeUnknownError):
            await world.channel.send(ORDER, task("too late"))
    assert len(world.received.results) == len(agent.posts)


async def test_calls_that_do_not_end_are_cut_off_when_it_closes():
    server, in_time = RawServer(sending(b"", pause_s=3)), asyncio.timeout(2)
    async with server.serving() as endpoint, in_time, channel_to(endpoint, close_within_s=0.1) as world:
        await world.channel.send(ORDER, task("held"))

    assert not world.received.results


async def test_the_call_of_a_cancelled_send_goes_on():
    agent = Agent()
    async with agent.serving() as endpoint, channel_to(endpoint) as world:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await world.channel.send(ORDER, task("hello"))

        assert (await world.result()).result.text == "hello"


async def test_an_error_of_its_block_comes_out_as_it_is():
    with pytest.raises(LookupError):
        async with channel_to(None):
            raise LookupError


@contextmanager
def stuck_server():
    """An address whose queue of connections is full: those who connect wait."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, ExitStack() as clients:
        address = server.getsockname()
        for _ in range(8):
            client = clients.enter_context(socket.socket())
            client.settimeout(0)
            client.connect_ex(address)
        yield f"http://127.0.0.1:{address[1]}/tasks"


async def _send_for_ever(channel):
    while True:
        await channel.send(ORDER, task("load"))
