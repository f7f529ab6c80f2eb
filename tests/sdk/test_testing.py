"""`dispatcher.sdk.testing`: an agent author's tests, through the real chain in one process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from pydantic import BaseModel

from dispatcher.errors import ConfigurationError
from dispatcher.protocol.frames import ResultStatus
from dispatcher.sdk import Agent, NeedsInput, Reply, TaskView
from dispatcher.sdk.testing import run_handler, running, task_view


class Count(BaseModel):
    times: int


def greeter() -> Agent:
    agent = Agent("greeter")

    @agent.handler(
        "greeting.say",
        description="Says hello to people",
        examples=["say hello", "please greet me", "say good morning to me"],
    )
    def say(task: TaskView) -> Reply[None] | NeedsInput:
        if task.user_id is None:
            raise NeedsInput("Who are you?")
        return Reply(text=f"Hello, {task.user_id}!")

    @agent.handler("greeting.count", description="Counts the visits of today")
    def count() -> Reply[Count]:
        return Reply(text="Twice.", data={"time": 2})  # type: ignore[arg-type]

    return agent


async def test_an_agent_is_reached_through_the_real_chain():
    async with running(greeter()) as client:
        answer = await client.chat("say hello", user_id="u1001", capability="greeting.say")
        decisions = await client.decisions(answer["request_id"])

    (part,) = answer["parts"]
    assert (answer["status"], answer["answer"]) == ("completed", "Hello, u1001!")
    assert (part["capability"], part["agent_id"], part["attempts"]) == ("greeting.say", "greeter", 1)
    assert decisions[0]["agent_id"] == "greeter"


async def test_a_question_back_comes_through():
    async with running(greeter()) as client:
        answer = await client.chat("say hello", capability="greeting.say")

    assert answer["parts"][0]["status"] == "needs_input"
    assert answer["answer"] == "Who are you?"


@pytest.mark.parametrize("cause", [None, ValueError("cause")])
async def test_what_the_block_raises_comes_out_as_it_is(cause):

    with pytest.raises(KeyError, match="part") as caught:
        async with running(greeter()):
            raise KeyError("part") from cause

    assert caught.value.__cause__ is cause
    assert caught.value.__suppress_context__


async def test_a_group_that_the_block_raises_stays_whole():
    async def fails() -> None:
        raise KeyError("part")

    with pytest.raises(ExceptionGroup) as caught:
        async with running(greeter()), asyncio.TaskGroup() as group:
            group.create_task(fails())

    assert [type(error) for error in caught.value.exceptions] == [KeyError]


async def test_what_keeps_the_chain_from_starting_comes_out_as_it_is():
    with pytest.raises(ConfigurationError, match="needs at least one handler"):
        async with running(Agent("greeter")):
            raise NotImplementedError


async def test_data_that_does_not_fit_the_return_annotation_is_an_agent_error():
    outcome = await run_handler(greeter(), "greeting.count")

    assert (outcome.status, outcome.error_code) == (ResultStatus.ERROR, "agent_error")
    assert outcome.error_message == (
        "the reply can't be sent: its data does not fit Count: times: Field required"
    )


async def test_one_handler_can_be_run_alone():
    outcome = await run_handler(greeter(), "greeting.say", view=task_view(user_id="Ada"))

    assert (outcome.status, outcome.result.text) == (ResultStatus.SUCCESS, "Hello, Ada!")


class Talker:
    """An agent that talks piece by piece, and one that goes on until it is cancelled."""

    def __init__(self) -> None:
        self.agent = Agent("talker")
        self.agent.handler("talk.stream", description="Talks.", idempotent=True)(self.talk)
        self.agent.handler("talk.on", description="Goes on.", timeout_s=600)(self.go_on)
        self.began = asyncio.Event()
        self.was_cancelled = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def talk(self, task: TaskView) -> AsyncIterator[str]:
        task.progress(0.5)
        yield "one "
        yield "two"

    async def go_on(self, task: TaskView) -> str:
        self._loop.call_soon_threadsafe(self.began.set)
        try:
            await asyncio.Event().wait()
        finally:
            if task.is_cancelled:
                self._loop.call_soon_threadsafe(self.was_cancelled.set)
        return "never"


async def test_pieces_reach_the_caller_before_the_answer():
    async with running(Talker().agent) as client:
        events = [event async for event in client.stream("talk", capability="talk.stream")]

    kinds = [event["event"] for event in events]
    pieces = [event["data"]["result"]["text"] for event in events if event["event"] == "partial"]
    assert (kinds[0], kinds[-1]) == ("accepted", "answer")
    assert "".join(pieces) == events[-1]["data"]["answer"] == "one two"


async def test_a_callers_cancel_reaches_the_running_handler_of_a_long_task():
    talker = Talker()
    async with running(talker.agent) as client, aclosing(client.stream("go", capability="talk.on")) as events:
        request_id = (await anext(events))["data"]["request_id"]
        await talker.began.wait()
        await client.cancel(request_id)
        await talker.was_cancelled.wait()

        assert (await client.request(request_id))["status"] == "cancelled"
