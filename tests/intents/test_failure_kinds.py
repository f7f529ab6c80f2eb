"""The kinds of messages that splitting gets wrong easily, one test for each, ranked as requests are."""

import pytest

from dispatcher.intents.decompose import RuleDecomposer
from dispatcher.intents.plan import MAX_INTENTS
from dispatcher.intents.segment import DecomposeRules

RULES = DecomposeRules()
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def understood(routed):
    """The pieces of a message, each with the capability it is routed to; None is out of scope."""

    async def call(message):
        ranker = await routed("shopdesk")
        pieces = await RuleDecomposer(RULES).split(message, ranker)
        ranks = await ranker([piece.ranked for piece in pieces])
        assert all(piece.text == message[piece.start : piece.end] for piece in pieces)
        return {
            piece.text: rank.capability if rank.in_scope else None
            for piece, rank in zip(pieces, ranks, strict=True)
        }

    return call


@pytest.fixture
def antecedents(routed):
    """What each piece of a message refers to."""

    async def call(message):
        pieces = await RuleDecomposer(RULES).split(message, await routed("shopdesk"))
        found = [piece.antecedent for piece in pieces]
        assert all(one is None or one.text == message[one.start : one.end] for one in found)
        return [one.text if one else None for one in found]

    return call


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        (
            "耳机坏了能修吗？不能修就给我退款",
            {"耳机坏了能修吗": "exchange_repair", "不能修就给我退款": "refund"},
        ),
        ("如果没货，就给我退款", {"如果没货，就给我退款": "refund"}),
        ("如果没货，怎么退款？另外开发票", {"如果没货，怎么退款": "refund", "开发票": "invoice"}),
        ("if it is out of stock then refund me", {"if it is out of stock then refund me": "refund"}),
        (
            "帮我查订单，如果没发货的话，帮我退款",
            {"帮我查订单": "order_query", "如果没发货的话，帮我退款": "refund"},
        ),
        ("refund me, if it is lost", {"refund me, if it is lost": "refund"}),
    ],
)
async def test_a_condition_goes_with_what_is_wanted_then(understood, message, wanted):
    assert await understood(message) == wanted


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("耳机坏了能修吗？不能修就给我退款", [None, "耳机坏了能修吗"]),
        ("耳機壞了能修嗎？不能修就給我退款", [None, "耳機壞了能修嗎"]),
        (
            "the courier was rude and my package is broken, I want to complain and exchange it",
            [None, None, "the courier was rude and my package is broken, I want to complain"],
        ),
        ("Where is my parcel, and can I still use a coupon on it?", [None, "Where is my parcel"]),
        ("where is my parcel, and any discount today?", [None, None]),
        ("查一下订单和快递", [None, "查一下订单"]),
    ],
)
async def test_a_wish_without_its_object_knows_what_was_said_before(antecedents, message, expected):
    assert await antecedents(message) == expected


async def test_a_shared_object_does_not_keep_two_wishes_together(understood):
    assert await understood("I want to complain and exchange it") == {
        "I want to complain": "complaint_human",
        "exchange it": "exchange_repair",
    }


@pytest.mark.parametrize(
    ("message", "capability"),
    [
        ("how do I open a store and what commission do you charge", "merchant_onboard"),
        ("please tell me the discount, and how much is it", "promo_calc"),
        ("会员价和券后价哪个更划算", "promo_calc"),
        ("明天北京和上海天气怎么样", "weather"),
        ("黑色和白色都有货吗", "inventory"),
        ("is there traffic between the station and the airport", "route_nav"),
    ],
)
async def test_and_inside_one_wish_does_not_cut(understood, message, capability):
    assert await understood(message) == {message: capability}


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("查一下订单和快递", {"查一下订单": "order_query", "快递": "logistics_track"}),
        (
            "查一下订单、发票和退款进度",
            {"查一下订单": "order_query", "发票": "invoice", "退款进度": "refund"},
        ),
        (
            "check my order, refund and invoice",
            {"check my order": "order_query", "refund": "refund", "invoice": "invoice"},
        ),
        (
            "帮我查订单，快递到哪了，开发票",
            {"帮我查订单": "order_query", "快递到哪了": "logistics_track", "开发票": "invoice"},
        ),
        (
            "track my parcel, cancel my membership",
            {"track my parcel": "logistics_track", "cancel my membership": "membership"},
        ),
        ("开发票，改地址", {"开发票": "invoice", "改地址": "address"}),
    ],
)
async def test_lists_of_things_and_bare_commas_are_cut_where_the_capabilities_differ(
    understood, message, wanted
):
    assert await understood(message) == wanted


@pytest.mark.parametrize(
    "message", ["太差劲了！！！！我要退款！！！！", "This is ridiculous!!! I want a refund!!! Seriously!!!"]
)
async def test_anger_is_no_wish(understood, message):
    assert set((await understood(message)).values()) == {"refund"}
    assert len(await understood(message)) == 1


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("你好，在吗？麻烦帮我查一下快递，谢谢啦，辛苦了", {"麻烦帮我查一下快递": "logistics_track"}),
        (
            "Hi! Hope you are well. Could you please track my parcel? Thank you so much in advance!",
            {"Could you please track my parcel": "logistics_track"},
        ),
    ],
)
async def test_filler_is_left_out(understood, message, wanted):
    assert await understood(message) == wanted


@pytest.mark.parametrize(
    "message",
    [
        "帮我查快递，顺便开发票；另外有优惠吗？",
        "帮我查快递,顺便开发票;另外有优惠吗?",
        "帮我查快递｡开发票､有优惠吗?",
        "帮我查快递~开发票~有优惠吗~",
        "帮我查快递😡开发票🙏有优惠吗",
        "1. 帮我查快递 2. 开发票 3. 有优惠吗",
        "1、帮我查快递\n2、开发票\n3、有优惠吗",
    ],
)
async def test_punctuation_of_every_width_emoji_and_numbers_separate(understood, message):
    assert await understood(message) == {
        "帮我查快递": "logistics_track",
        "开发票": "invoice",
        "有优惠吗": "promo_calc",
    }


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        (
            "另外幫我查一下快遞到哪了，順便開發票",
            {"幫我查一下快遞到哪了": "logistics_track", "開發票": "invoice"},
        ),
        (
            "我想查訂單，還有退款什麼時候到賬",
            {"我想查訂單": "order_query", "退款什麼時候到賬": "refund"},
        ),
        (
            "我要退款，並且我要投訴，然後開發票",
            {"我要退款": "refund", "我要投訴": "complaint_human", "開發票": "invoice"},
        ),
    ],
)
async def test_traditional_characters_are_read_like_simplified_ones(understood, message, wanted):
    assert await understood(message) == wanted


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        (
            "我的order到哪了，顺便check一下有没有coupon",
            {"我的order到哪了": "order_query", "check一下有没有coupon": "promo_calc"},
        ),
        ("查快递and also any discount？", {"查快递": "logistics_track", "any discount": "promo_calc"}),
        (
            "where is my 快递 and 有没有优惠",
            {"where is my 快递": "logistics_track", "有没有优惠": "promo_calc"},
        ),
    ],
)
async def test_languages_may_be_mixed(understood, message, wanted):
    assert await understood(message) == wanted


@pytest.mark.parametrize("message", ["wheres my parcle plz", "i wnat a refnud pls", "my order didn;t ship"])
async def test_typos_do_not_cut(understood, message):
    assert list(await understood(message)) == [message]


async def test_a_mark_without_a_space_behind_it_still_ends_a_sentence(understood):
    assert await understood("my payment failed.Is the black one in stock") == {
        "my payment failed": "payment",
        "Is the black one in stock": "inventory",
    }


async def test_of_a_very_long_text_the_beginning_and_the_end_are_ranked(understood):
    message = f"我要退款{'这个商品用了几天就不太满意我跟朋友也说过' * 60}所以请给我退款"

    assert await understood(message) == {message: "refund"}


async def test_forty_clauses_become_at_most_as_many_wishes_as_there_may_be(understood):
    message = "。".join(["查一下快递到哪了", "帮我开发票", "现在有没有优惠", "我要投诉"] * 10)

    found = await understood(message)

    assert 4 <= len(found) <= MAX_INTENTS
    assert {"logistics_track", "invoice", "promo_calc", "complaint_human"} & set(found.values())
    first, *_, last = found
    assert first.startswith("查一下快递到哪了")
    assert last.endswith("我要投诉")
