import pytest

from dispatcher.intents.filler import is_asking, is_courtesy, is_pointing


@pytest.mark.parametrize("clause", ["hi there", "Thank you so much", "太感谢了", "急用", "你好，在吗"])
def test_greetings_thanks_and_urgency_are_courtesy(clause):
    assert is_courtesy(clause)


@pytest.mark.parametrize("clause", ["where is my parcel", "查快递", "😀", "hi " * 40])
def test_anything_with_a_topic_is_not_courtesy(clause):
    assert not is_courtesy(clause)


@pytest.mark.parametrize("clause", ["can you help", "what is it now", "请帮我查一下", "what’s that"])
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
