import pytest

from dispatcher.intents.filler import is_asking, is_courtesy, is_pointing, is_standing


@pytest.mark.parametrize("clause", ["hi there", "Thank you so much", "太感谢了", "急用", "你好，在吗"])
def test_greetings_thanks_and_urgency_are_courtesy(clause):
    assert is_courtesy(clause)


@pytest.mark.parametrize("clause", ["where is my parcel", "查快递", "😀", "hi " * 40])
def test_anything_with_a_topic_is_not_courtesy(clause):
    assert not is_courtesy(clause)


@pytest.mark.parametrize(
    "clause", ["can you help", "what is it now", "请帮我查一下", "what’s that", "求推荐", "plz help"]
)
def test_words_without_a_topic_point_at_another_clause(clause):
    assert is_pointing(clause)


@pytest.mark.parametrize("clause", ["what is it worth in euros", "帮我查快递"])
def test_a_topic_makes_a_clause_stand_alone(clause):
    assert not is_pointing(clause)


@pytest.mark.parametrize(
    ("clause", "mark"),
    [
        ("anything", "?"),
        ("什么都行", ""),
        ("tell me a joke", ""),
        ("please sing", ""),
        ("讲个笑话", ""),
        ("随便", "？"),
    ],
)
def test_questions_and_requests_ask(clause, mark):
    assert is_asking(clause, mark)


@pytest.mark.parametrize("clause", ["it is my birthday", "我搬家了", "我的订单很重要", "几天前下的单"])
def test_statements_do_not_ask(clause):
    assert not is_asking(clause, "。")


@pytest.mark.parametrize(
    ("clause", "mark"),
    [
        ("what is the weather in Paris", ""),
        ("when will my laptop ship", ""),
        ("order status pls", ""),
        ("what promotions are there", ""),
        ("free shipping", "?"),
        ("如何学习Python", ""),
        ("我想问一下有没有优惠", ""),
    ],
)
def test_a_question_or_request_in_its_own_words_stands(clause, mark):
    assert is_standing(clause, mark)


@pytest.mark.parametrize(
    "clause",
    [
        "how do I use them",
        "are they open nearby",
        "or for new customers",
        "when it arrives",
        "I want to open a shop",
        "我想开店",
        "如果没货怎么退款",
        "是不是丢了",
        "周边有什么景点",
        "帮我看看其他的",
        "我们想多逛几个景点",
    ],
)
def test_what_refers_to_another_clause_continues_it_or_is_a_mere_desire_does_not_stand(clause):
    assert not is_standing(clause)
