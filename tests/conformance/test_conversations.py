"""Sessions as callers meet them: questions that are answered later, a context that is remembered."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from dispatcher.sdk import Agent, NeedsInput, Reply, TaskView
from tests.conformance.conversation_world import QUOTE, add_parcels, talking
from tests.conformance.whole import Whole

RETURN = "shirt.exchange"


class Exchange(BaseModel):
    size: Literal["S", "M", "L"] | None = None


def tailor() -> Agent:
    """Exchanges shirts once it knows the size, and remembers it."""
    agent = Agent("tailor")

    @agent.handler(
        RETURN,
        description=["换一件衬衫的尺码", "exchanges a shirt for another size"],
        examples=["我想换一件衬衫", "衬衫尺码不合适要换", "exchange my shirt", "the shirt does not fit"],
        idempotent=True,
    )
    async def exchange(wish: Exchange, task: TaskView) -> Reply[Any] | NeedsInput:
        size = wish.size or task.data.get("size")
        if size is None:
            return NeedsInput("您要换成什么尺码？", fields=("size",))
        return Reply(text=f"已换成 {size} 码", context_update={"size": size})

    add_parcels(agent)
    return agent


@pytest.fixture
async def whole(store_url: str, tmp_path: Path) -> AsyncIterator[Whole]:
    async with talking(tailor(), RETURN, store_url, tmp_path) as whole:
        yield whole


async def test_what_an_agent_asks_is_answered_by_the_next_message(whole: Whole) -> None:
    asked = await whole.chat("我想换一件衬衫", session_id="s1")

    answered = await whole.chat("M", session_id="s1")

    assert (asked["parts"][0]["status"], asked["answer"]) == ("needs_input", "您要换成什么尺码？")
    assert (answered["status"], answered["answer"]) == ("completed", "已换成 M 码")
    assert answered["parts"][0]["capability"] == RETURN


async def test_a_missing_required_field_is_filled_by_the_next_message(whole: Whole) -> None:
    asked = await whole.chat("我的包裹到哪里了", session_id="s1")

    answered = await whole.chat("订单号是 A20260001", session_id="s1")

    assert asked["parts"][0]["error"]["code"] == "input_missing"
    assert answered["answer"] == "包裹 A20260001 在上海"


async def test_one_message_after_the_other_answers_what_was_asked_at_once(whole: Whole) -> None:
    asked = await whole.chat("我想换一件衬衫，另外我的包裹到哪里了", session_id="s1")

    size = await whole.chat("M", session_id="s1")
    number = await whole.chat("订单号是 A20260001", session_id="s1")

    assert {part["status"] for part in asked["parts"]} == {"needs_input"}
    assert (size["answer"], number["answer"]) == ("已换成 M 码", "包裹 A20260001 在上海")


async def test_a_message_that_answers_nothing_is_routed_afresh_and_the_question_is_over(whole: Whole) -> None:
    await whole.chat("我想换一件衬衫", session_id="s1")

    other = await whole.chat("有什么优惠折扣", session_id="s1")
    late = await whole.chat("M", session_id="s1")

    assert other["parts"][0]["capability"] == QUOTE
    assert late["status"] == "fallback"


async def test_without_a_session_nothing_is_remembered(whole: Whole) -> None:
    await whole.chat("我想换一件衬衫")

    assert (await whole.chat("M"))["status"] == "fallback"


async def test_what_a_reply_tells_the_context_is_known_to_the_sessions_next_request(whole: Whole) -> None:
    await whole.chat("我想换一件衬衫", session_id="s1")
    await whole.chat("M", session_id="s1")

    again = await whole.chat("我想换一件衬衫", session_id="s1")
    elsewhere = await whole.chat("我想换一件衬衫", session_id="s2")
    told = await whole.chat("我想换一件衬衫", session_id="s1", context={"size": "L"})

    assert again["answer"] == "已换成 M 码"
    assert elsewhere["status"] == "partial"
    assert told["answer"] == "已换成 L 码"


async def test_sessions_of_two_callers_do_not_meet(whole: Whole) -> None:
    await whole.chat("我想换一件衬衫", session_id="s1")

    response = await whole.bob.post("/v1/chat", json={"message": "M", "session_id": "s1"})

    assert response.json()["status"] == "fallback"


async def test_another_user_of_a_session_answers_no_question_of_the_one_before(whole: Whole) -> None:
    await whole.chat("我想换一件衬衫", session_id="s1", user_id="u1")

    by_another = await whole.chat("M", session_id="s1", user_id="u2")
    answered = await whole.chat("M", session_id="s1", user_id="u1")

    assert by_another["status"] == "fallback"
    assert answered["answer"] == "已换成 M 码"


async def test_another_user_of_a_session_finds_nothing_of_its_context_and_begins_it_anew(
    whole: Whole,
) -> None:
    await whole.chat("我想换一件衬衫", session_id="s1", user_id="u1")
    await whole.chat("M", session_id="s1", user_id="u1")

    by_another, by_the_first = [
        await whole.chat("我想换一件衬衫", session_id="s1", user_id=user) for user in ("u2", "u1")
    ]

    assert (by_another["answer"], by_the_first["answer"]) == ("您要换成什么尺码？",) * 2
