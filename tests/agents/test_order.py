"""The order agent's answers."""

import pytest

from agents.order import agent
from dispatcher.protocol.frames import ResultStatus


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("zh", "我的手机发出了没有", ("星河 X5 手机", "6 天前", "2999.00 元", "尚未发货：", "缺货")),
        ("en", "has the phone left yet", ("Nebula X5 phone", "6 days ago", "has not shipped yet: ", "stock")),
    ],
)
async def test_the_users_words_find_the_order_and_its_reason(ask, language, text, said):
    outcome = await ask(agent, text, language=language, user_id="u1001")

    assert outcome.status is ResultStatus.SUCCESS
    assert outcome.result.data["order_number"] == "2025103101"
    assert (outcome.result.data["amount"], outcome.result.data["status"]) == (2999.0, "packing")
    assert all(part in outcome.result.text for part in said)


async def test_words_that_fit_no_order_mean_the_newest(ask):
    outcome = await ask(agent, "what about my order", user_id="u1002")

    assert outcome.result.data["order_number"] == "2025103115"
    assert "ordered today, is waiting for payment" in outcome.result.text


@pytest.mark.parametrize(
    "fields", [{"order_number": "2025102918"}, {"phone": "+447700900123"}], ids=["number", "phone"]
)
async def test_a_number_finds_the_order_of_an_unknown_user(ask, fields):
    outcome = await ask(agent, "my tablet", fields)

    assert outcome.result.data["order_number"] == "2025102918"


@pytest.mark.parametrize(("language", "question"), [("zh", "请提供订单号"), ("en", "Which order is it?")])
@pytest.mark.parametrize("user_id", [None, "u9999"])
async def test_who_is_not_known_is_asked_in_their_language(ask, language, question, user_id):
    outcome = await ask(agent, "?", language=language, user_id=user_id)

    assert outcome.status is ResultStatus.NEEDS_INPUT
    assert question in outcome.result.text
    assert outcome.result.data == {"fields": ["order_number", "phone"]}


@pytest.mark.parametrize(("language", "said"), [("zh", "没有找到与 2025103022 对应"), ("en", "2025103022")])
async def test_another_users_order_does_not_exist(ask, language, said):
    outcome = await ask(agent, "?", {"order_number": "2025103022"}, language=language, user_id="u1001")

    assert outcome.status is ResultStatus.NEEDS_INPUT
    assert said in outcome.result.text
