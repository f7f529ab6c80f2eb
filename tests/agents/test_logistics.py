"""Where parcels are."""

import pytest

from agents.logistics import agent
from dispatcher.protocol.frames import ResultStatus


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("zh", ("迅达快递", "运输途中", "5 小时前在杭州转运中心", "预计 1 天内送达")),
        ("en", ("Swift Express", "on its way", "5 hours ago at the Hangzhou hub", "arrive tomorrow")),
    ],
)
async def test_the_users_newest_parcel_is_followed(ask, language, said):
    outcome = await ask(agent, "where is it", language=language, user_id="u1001")

    assert outcome.result.data["order_number"] == "2025102007"
    assert outcome.result.data["due_in_days"] == 1
    assert all(part in outcome.result.text for part in said)


@pytest.mark.parametrize(("language", "said"), [("zh", "已签收，38 天前在"), ("en", "is delivered; it was")])
async def test_a_delivered_parcel_is_not_due(ask, language, said):
    outcome = await ask(agent, "?", {"order_number": "2025091512"}, language=language)

    assert outcome.result.data["due_in_days"] is None
    assert said in outcome.result.text


@pytest.mark.parametrize(("language", "said"), [("zh", "预计今天送达"), ("en", "should arrive today")])
async def test_a_parcel_may_be_due_today(ask, language, said):
    assert said in (await ask(agent, "?", language=language, user_id="u1002")).result.text


@pytest.mark.parametrize(("language", "said"), [("zh", "请提供要查询的订单号"), ("en", "Which order number")])
@pytest.mark.parametrize("user_id", [None, "u9999"])
async def test_who_is_not_known_is_asked_in_their_language(ask, language, said, user_id):
    outcome = await ask(agent, "?", language=language, user_id=user_id)

    assert outcome.status is ResultStatus.NEEDS_INPUT
    assert said in outcome.result.text


@pytest.mark.parametrize(("language", "said"), [("zh", "可能尚未发货"), ("en", "may not have shipped")])
async def test_an_order_without_a_parcel_is_said_to_have_none(ask, language, said):
    outcome = await ask(agent, "?", {"order_number": "2025103101"}, language=language, user_id="u1001")

    assert outcome.status is ResultStatus.NEEDS_INPUT
    assert said in outcome.result.text
