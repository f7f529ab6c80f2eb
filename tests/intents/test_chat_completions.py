"""A chat endpoint that misbehaves costs one clear sentence; nothing of its answer is used or repeated."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.intents.chat_completions import ChatCompletions, ChatRules
from dispatcher.intents.language_model import Prompt, closed_object
from dispatcher.intents.model_budget import BudgetRules, ModelBudget
from tests.intents.chat_stub import ChatStub, chat_stub
from tests.intents.held_clock import HeldClock

TEXT = "where is my parcel, 我的快递到哪了"
PROMPT = Prompt(
    name="pieces",
    system="Say it.",
    data={"message": TEXT},
    schema=closed_object({"echo": {"type": "object"}}),
)


@pytest.fixture
async def stub() -> AsyncIterator[ChatStub]:
    async with chat_stub() as running:
        yield running


def client(stub: ChatStub, budget: BudgetRules | None = None, **rules: Any) -> ChatCompletions:
    chosen = replace(ChatRules(url=stub.url, model="m", timeout_s=20.0), **rules)
    return ChatCompletions(chosen, ModelBudget(budget or BudgetRules(), HeldClock()))


MOODS = {
    "500": r"failed \(500\)",
    "404": r"failed \(404\)",
    "307": r"failed \(307\)",
    "429": r"takes no more for now \(429\)",
    "401": r"does not take the key \(401\)",
    "403": r"does not take the key \(403\)",
    "html": "no completion in JSON",
    "null": "no completion in JSON",
    "number": "no completion in JSON",
    "no choices": "no completion in JSON",
    "no text": "no completion in JSON",
    "prose": "no completion in JSON",
    "cut": "no completion in JSON",
    "deep": "no completion in JSON",
    "endless": "can't be reached, or broke off",
    "broken off": "can't be reached, or broke off",
}


@pytest.mark.parametrize(("mood", "sentence"), MOODS.items(), ids=MOODS)
async def test_what_is_wrong_is_one_sentence_and_the_next_call_is_a_new_one(stub, mood, sentence):
    model = client(stub)
    async with model.opened():
        stub.mood = mood
        with pytest.raises(UnavailableError, match=f"^the language model .*{sentence}") as caught:
            await model.ask(PROMPT)
        stub.mood = "well"

        assert await model.ask(PROMPT) == {"echo": {"message": TEXT}}
    assert not any(hidden in caught.value.message for hidden in (TEXT, "secret details"))
    assert set(stub.paths) == {"/v1/chat/completions"}


async def test_a_slow_endpoint_is_not_waited_for(stub):
    model = client(stub, timeout_s=0.2)
    stub.mood = "slow"

    async with model.opened():
        with pytest.raises(UnavailableError, match=r"did not answer within 0\.2 s"):
            await model.ask(PROMPT)


async def test_an_endpoint_that_is_not_there_is_one_sentence(stub):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        model = client(stub, url=f"http://127.0.0.1:{free.getsockname()[1]}/v1")
        async with model.opened():
            with pytest.raises(UnavailableError, match="can't be reached"):
                await model.ask(PROMPT)


async def test_an_address_that_can_not_be_asked_is_one_sentence_that_does_not_repeat_it(stub):
    model = client(stub, url="http://u:hunter2@127.0.0.1:1/", key="k")

    async with model.opened():
        with pytest.raises(UnavailableError, match="can't be asked at this address") as caught:
            await model.ask(PROMPT)

    assert caught.value.__cause__ is None


async def test_what_users_wrote_is_sent_as_data_apart_from_what_we_ask(stub):
    model = client(stub, key="sk-of-the-endpoint", max_tokens=99)

    async with model.opened():
        await model.ask(PROMPT)

    (asked,) = stub.asked
    ours, data = asked.pop("messages")
    assert ours == {"role": "system", "content": "Say it."}
    assert (data["role"], TEXT in data["content"], TEXT in ours["content"]) == ("user", True, False)
    assert asked == {
        "model": "m",
        "temperature": 0,
        "max_tokens": 99,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "pieces", "strict": True, "schema": PROMPT.schema},
        },
    }
    assert stub.keys == ["Bearer sk-of-the-endpoint"]
    assert "sk-of" not in repr(ChatRules(url=stub.url, model="m", key="sk-of-the-endpoint"))


async def test_without_a_key_none_is_sent(stub):
    model = client(stub)

    async with model.opened():
        await model.ask(PROMPT)

    assert stub.keys == [None]


def test_a_key_that_fits_no_header_is_refused():
    with pytest.raises(ConfigurationError, match="visible ASCII"):
        ChatCompletions(
            ChatRules(url="http://127.0.0.1:1", model="m", key="a\nb"),
            ModelBudget(BudgetRules(), HeldClock()),
        )


async def test_a_text_that_is_no_unicode_is_not_sent(stub):
    model = client(stub)
    halved = Prompt(name="n", system="s", data={"message": "\ud800"}, schema={})

    async with model.opened():
        with pytest.raises(UnavailableError, match="no Unicode"):
            await model.ask(halved)

    assert stub.asked == []


async def test_outside_of_its_block_nothing_is_asked(stub):
    model = client(stub)
    async with model.opened():
        pass

    with pytest.raises(UnavailableError, match="not asked any more"):
        await model.ask(PROMPT)


async def test_beyond_the_calls_at_once_nothing_is_asked(stub):
    model = client(stub, BudgetRules(calls=1))
    stub.mood = "slow"

    async with model.opened(), asyncio.TaskGroup() as group:
        first = group.create_task(model.ask(PROMPT))
        async with asyncio.timeout(20):
            await stub.arrived.wait()
        with pytest.raises(UnavailableError, match="run already"):
            await model.ask(PROMPT)
        stub.mood = "well"
        stub.released.set()
        assert await first == {"echo": {"message": TEXT}}


COSTS = [(50, 4), (None, 1), ("many", 1), (True, 1), (10**30, 1), (-5, 10)]


@pytest.mark.parametrize(("said", "calls"), COSTS)
async def test_a_call_costs_what_the_endpoint_says_or_else_what_was_estimated(stub, said, calls):
    """760 tokens, of which an estimate takes 600 and more; without a number that stays."""
    model = client(stub, BudgetRules(tokens_per_minute=760), max_tokens=480)
    stub.tokens = said

    async with model.opened():
        for _ in range(calls):
            await model.ask(PROMPT)
        if calls != 10:
            with pytest.raises(UnavailableError, match="used up"):
                await model.ask(PROMPT)
