import pytest

from dispatcher.intents.reference import is_condition, is_item, is_leaning, plain, refers


@pytest.mark.parametrize(
    "clause",
    [
        "exchange it",
        "let me know if I have enough in them",
        "How do I get it back",
        "tell him it happened again",
        "what are the fees",
        "how long does this usually take",
        "what kind do i need",
        "不能修就给我退款",
        "不能修的话换个新的",
        "要多久",
        "帮我把它退了",
        "還要多久",
    ],
)
def test_what_has_no_topic_of_its_own_leans_on_what_was_said_before(clause):
    assert is_leaning(clause)


@pytest.mark.parametrize(
    "clause",
    [
        "what's the wait like at this new steakhouse",
        "tell me a joke",
        "refund",
        "can I still use a coupon on it on Monday",
        "讲个笑话",
        "宇宙有多大",
        "快递什么时候到",
        "😀",
    ],
)
def test_what_names_its_topic_stands_on_its_own(clause):
    assert not is_leaning(clause)


@pytest.mark.parametrize(
    "clause",
    ["if it is out of stock", "since I ran out", "on my new card", "如果没货", "没发货的话", "雖然貴"],
)
def test_a_condition_without_its_consequence_is_one(clause):
    assert is_condition(clause)


@pytest.mark.parametrize(
    "clause",
    [
        "if it is out of stock can I get a refund",
        "如果没货就退款",
        "如果没货怎么退款",
        "若干个订单",
        "for this order I want to know what became of it",
        "refund me",
    ],
)
def test_one_that_says_what_is_wanted_is_none(clause):
    assert not is_condition(clause)


@pytest.mark.parametrize(
    ("clause", "short"),
    [
        ("refund", True),
        ("my invoice", True),
        ("退款进度", True),
        ("发票A", True),
        ("exchange my order", False),
        ("查一下订单", False),
        ("发票 abc", True),
        ("退款进度 abc", False),
    ],
)
def test_a_thing_in_a_list_is_short(clause, short):
    assert is_item(clause) is short


def test_clauses_are_compared_in_small_letters_and_simplified_characters_of_the_same_number():
    assert plain("What’s 這個 İ") == "What's 这个 İ"
    assert plain("What’s 這個") == "what's 这个"


def test_words_that_continue_a_clause_refer():
    assert refers("or for new customers")
    assert not refers("what promotions are there")
