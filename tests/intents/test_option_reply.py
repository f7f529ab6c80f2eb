"""Answers to "which one?"."""

import pytest

from dispatcher.identifiers import Capability
from dispatcher.intents.option_reply import is_choice, meant_option, named_option

ORDER, PARCEL, REFUND = OPTIONS = tuple(map(Capability, ("order.query", "parcel.track", "refund.apply")))


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("1", 0),
        (" 2. ", 1),
        ("３", 2),
        ("第二个", 1),
        ("选1", 0),
        ("选项三", 2),
        ("一", 0),
        ("两", 1),
        ("第一个吧。", 0),
        ("the second one", 1),
        ("Option 3", 2),
        ("no. 2", 1),
        ("#1", 0),
        ("first!", 0),
        ("2nd", 1),
        ("parcel.track", 1),
        ("REFUND.apply", 2),
    ],
)
def test_a_number_or_a_name_says_which(message: str, place: int) -> None:
    assert named_option(message, OPTIONS) == place


@pytest.mark.parametrize(
    "message",
    ["4", "第九个", "12", "0", "", "?", "1 个月", "one more thing", "parcel", "the", "查一下 1 号订单"],
)
def test_anything_else_names_none(message: str) -> None:
    assert named_option(message, OPTIONS) is None


NO_CHOICE = [
    *("两个", "二个", "我要两个", "选两个", "2个", "两项", "三种", "一个", "我要两", "都要", "both"),
    *("the two", "two options", "one or two", "all three"),
    *("no one", "No one.", "no two", "none", "neither", "no", "都不是", "一个都不要"),
]


@pytest.mark.parametrize("message", NO_CHOICE)
def test_both_or_none_of_them_is_no_choice(message: str) -> None:
    assert named_option(message, OPTIONS) is None


@pytest.mark.parametrize(
    "message",
    [
        *NO_CHOICE,
        *("4", "第九个", "第十个", "12", "0", "10th", "four", "the last one", "1", "第二个", "parcel.track"),
        *("neither of them", "None of these", "all of them", "either one", "any", "1 and 2", "1和2"),
        *("两个都要", "哪个都不是", "都可以", "也不是", "不是", "全都要", "随便", "the others"),
    ],
)
def test_a_message_may_read_like_a_reply_without_naming_an_option(message: str) -> None:
    assert is_choice(message, OPTIONS)


@pytest.mark.parametrize(
    "message",
    [
        *(
            "",
            "?",
            "123",
            "A20260001",
            "M",
            "yes",
            "the",
            "parcel",
            "one more thing",
            "no sound",
            "one month",
        ),
        *(
            "查一下 1 号订单",
            "1 个月",
            "张三",
            "是的",
            "好的",
            "不合适",
            "没有声音",
            "蓝色的那个",
            "可以",
            "要多久",
        ),
    ],
)
def test_what_says_something_else_is_no_reply_to_options(message: str) -> None:
    assert not is_choice(message, OPTIONS)


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("no 2", 1),
        ("no.one", 0),
        ("我选第二项", 1),
        ("选二", 1),
        ("2号吧", 1),
        ("the third", 2),
        ("number two", 1),
    ],
)
def test_a_word_in_front_says_that_it_is_a_choice(message: str, place: int) -> None:
    assert named_option(message, OPTIONS) == place


def test_a_number_beyond_two_options_is_none() -> None:
    assert named_option("third", OPTIONS[:2]) is None


def test_a_short_message_means_the_one_option_it_is_clearly_near_to() -> None:
    assert meant_option("the parcel", [PARCEL], OPTIONS) == 1


@pytest.mark.parametrize(
    ("message", "near"),
    [
        ("the parcel", []),
        ("the parcel", [PARCEL, ORDER]),
        ("a joke", [Capability("joke.tell")]),
        ("x" * 65, [PARCEL]),
        ("  ", [PARCEL]),
    ],
)
def test_what_is_unclear_foreign_or_long_means_none(message: str, near: list[Capability]) -> None:
    assert meant_option(message, near, OPTIONS) is None
