"""A language model is asked where the rules are unsure, and nowhere else."""

import pytest

from dispatcher.identifiers import Capability
from dispatcher.intents.doubt import (
    Doubt,
    DoubtRules,
    Near,
    Standing,
    asks_twice,
    choice_doubt,
    is_fused,
    split_doubt,
    within_reach,
)
from dispatcher.intents.plan import Piece

RULES = DoubtRules(margin=0.1, fused_similarity=0.7, fused_bytes=45, offers=3)


def standing(*near: tuple[float, float], in_scope: bool = True, below: float = -1.0) -> Standing:
    """A standing with capabilities `c0`, `c1`, …: similarity, and how far behind, where a unit is 0.5."""
    names = (Near(Capability(f"c{at}"), *one) for at, one in enumerate(near))
    return Standing(near=tuple(names), in_scope=in_scope, below=below, unit=0.5)


SURE = standing((0.9, 0.0), (0.2, 0.3))


def pieces(*texts: str) -> list[Piece]:
    starts = [sum(len(text) + 1 for text in texts[:at]) for at in range(len(texts))]
    return [
        Piece(text=text, start=start, end=start + len(text))
        for text, start in zip(texts, starts, strict=True)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "帮我查下订单到哪了怎么申请退货",
        "查下訂單到哪了怎麼申請退貨",
        "订单发货了吗可以退吗",
        "where is my order 17 and how do I send it back",
        "Please cancel my order tell me about refunds",
        "能不能改地址顺丰几点到",
    ],
)
def test_a_clause_that_asks_twice_is_noticed(text):
    assert asks_twice(text)


@pytest.mark.parametrize(
    "text",
    [
        "我的订单到哪了",
        "我想请你帮我查一下订单",
        "帮我看看有没有优惠",
        "订单发货了吗",
        "订单发货了吗？",
        "how many are there",
        "can you tell me the status of order 17",
        "somewhere",
        "",
        "\ud800",
    ],
)
def test_a_clause_that_asks_once_is_none(text):
    assert not asks_twice(text)


LONG = "查一下我上个月买的那台手机的物流信息和保修期限"


@pytest.mark.parametrize(
    ("text", "ranked", "expected"),
    [
        (LONG, standing((0.9, 0.0), (0.7, 0.2)), True),
        (LONG, standing((0.9, 0.0), (0.69, 0.2)), False),
        (LONG, standing((0.69, 0.0), (0.9, 0.2)), False),
        (LONG, standing((0.9, 0.0)), False),
        (LONG[:14], standing((0.9, 0.0), (0.9, 0.2)), False),
        (LONG[:15], standing((0.9, 0.0), (0.9, 0.2)), True),
        ("订单到哪了怎么申请退货", SURE, True),
    ],
)
def test_a_long_text_near_to_two_capabilities_may_want_both(text, ranked, expected):
    assert is_fused(text, ranked, RULES) is expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["我的订单到哪了"], None),
        (["where is it"], None),
        (["我的订单到哪了", "有什么优惠"], None),
        (["the courier broke my lamp", "exchange it"], Doubt.POINTING),
        (["耳机坏了", "换一个那个"], Doubt.POINTING),
        (["订单到哪了怎么申请退货"], Doubt.FUSED),
        (["耳机坏了", "能不能换耳机顺丰几点到"], Doubt.FUSED),
    ],
)
def test_a_split_is_doubted_for_a_fused_piece_or_one_that_points_at_another(texts, expected):
    assert split_doubt(pieces(*texts), [SURE] * len(texts), RULES) is expected


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        (SURE, None),
        (standing((0.9, 0.0), (0.9, 0.05)), Doubt.LOW_MARGIN),
        (standing((0.9, 0.0), (0.9, 0.051)), None),
        (standing((0.9, 0.0)), None),
        (standing((0.3, 0.0), in_scope=False, below=0.05), Doubt.NEAR_FLOOR),
        (standing((0.3, 0.0), in_scope=False, below=-0.2), Doubt.NEAR_FLOOR),
        (standing((0.3, 0.0), (0.3, 0.0), in_scope=False, below=0.051), None),
        (standing(in_scope=False, below=0.0), None),
    ],
)
def test_a_choice_is_doubted_within_the_margin(ranked, expected):
    assert choice_doubt(ranked, RULES) is expected


def test_what_may_be_chosen_is_what_the_margin_does_not_tell_from_the_best():
    ranked = standing((0.9, 0.0), (0.8, 0.02), (0.7, 0.05), (0.7, 0.05))

    assert within_reach(ranked, RULES) == ("c0", "c1", "c2")
    assert within_reach(SURE, RULES) == ("c0",)
