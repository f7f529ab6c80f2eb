"""`dispatcher.sdk.testing`: an agent author's tests, through the real chain in one process."""

from dispatcher.protocol.frames import ResultStatus
from dispatcher.sdk import Agent, NeedsInput, Reply, TaskView
from dispatcher.sdk.testing import run_handler, running, task_view


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


async def test_one_handler_can_be_run_alone():
    outcome = await run_handler(greeter(), "greeting.say", view=task_view(user_id="Ada"))

    assert (outcome.status, outcome.result.text) == (ResultStatus.SUCCESS, "Hello, Ada!")
