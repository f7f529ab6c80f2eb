"""Messages that mean something only behind what their session said before, with the packaged encoder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dispatcher.sdk import Agent, TaskView
from tests.conformance.conversation_world import QUOTE, add_parcels, talking
from tests.conformance.whole import Whole

REPAIR = "device.repair"
BROKEN = {"zh": "我的耳机坏了", "en": "my headphones are broken"}
CAN_YOU = {"zh": "能修吗", "en": "can you fix it"}
HOW_LONG = {"zh": "要多久", "en": "how long does it take"}
DISCOUNTS = {"zh": "有什么优惠折扣", "en": "any discounts or coupons"}
JOKE = {"zh": "给我讲个笑话", "en": "tell me a joke"}
NUMBERED = {"zh": "订单号A20260001的包裹到哪里了", "en": "where is my parcel, order number A20260001"}
WHEN = {"zh": "什么时候到", "en": "when will it arrive"}
LANGUAGES = pytest.mark.parametrize("language", ["zh", "en"])


def workbench() -> Agent:
    """Repairs what its customers named, and knows where parcels are."""
    agent = Agent("workbench")

    @agent.handler(
        REPAIR,
        description=["维修坏了的耳机和手机", "repairs broken headphones and phones"],
        examples=[
            "我的耳机坏了",
            "耳机没有声音了",
            "my headphones are broken",
            "the phone screen is cracked",
        ],
        idempotent=True,
    )
    async def repair(task: TaskView) -> str:
        return f"{task.entity('antecedent')} > {task.text}"

    add_parcels(agent)
    return agent


@pytest.fixture
async def whole(store_url: str, tmp_path: Path) -> AsyncIterator[Whole]:
    async with talking(workbench(), REPAIR, store_url, tmp_path) as whole:
        yield whole


@LANGUAGES
async def test_a_question_without_its_object_goes_where_the_topic_before_went(
    whole: Whole, language: str
) -> None:
    said = (BROKEN, CAN_YOU, JOKE, HOW_LONG, DISCOUNTS)

    answers = [await whole.chat(text[language], session_id="s1") for text in said]

    assert [[part["capability"] for part in answer["parts"]] for answer in answers] == [
        [REPAIR],
        [REPAIR],
        [None],
        [REPAIR],
        [QUOTE],
    ]
    assert answers[1]["answer"] == f"{BROKEN[language]} > {CAN_YOU[language]}"
    assert answers[3]["answer"] == f"{BROKEN[language]} > {HOW_LONG[language]}"


@LANGUAGES
async def test_outside_its_session_it_is_out_of_scope(whole: Whole, language: str) -> None:
    await whole.chat(BROKEN[language], session_id="s1")

    alone = await whole.chat(CAN_YOU[language])
    elsewhere = await whole.chat(CAN_YOU[language], session_id="s2")
    of_another = await whole.bob.post("/v1/chat", json={"message": CAN_YOU[language], "session_id": "s1"})
    await whole.chat(BROKEN[language], session_id="s3", user_id="u1")
    by_another = await whole.chat(CAN_YOU[language], session_id="s3", user_id="u2")

    answers = (alone, elsewhere, of_another.json(), by_another)
    assert [answer["parts"][0]["status"] for answer in answers] == ["out_of_scope"] * 4


async def test_a_number_that_was_named_is_not_asked_for_again(whole: Whole) -> None:
    for language in ("zh", "en"):
        await whole.chat(NUMBERED[language], session_id=language)

        assert (await whole.chat(WHEN[language], session_id=language))["answer"] == "包裹 A20260001 在上海"


async def test_an_explanation_says_the_same_and_remembers_nothing(whole: Whole) -> None:
    async def explained(message: str) -> str | None:
        response = await whole.alice.post("/v1/route", json={"message": message, "session_id": "s1"})
        (intent,) = response.json()["intents"]
        found: str | None = intent["capability"]
        return found

    assert (await explained(BROKEN["zh"]), await explained(CAN_YOU["zh"])) == (REPAIR, None)
    await whole.chat(BROKEN["zh"], session_id="s1")
    assert await explained(CAN_YOU["zh"]) == REPAIR
