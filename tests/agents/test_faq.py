"""The shop's rules."""

import pytest

from agents.faq import agent
from agents.faq.agent import best_entry, load_entries


@pytest.mark.parametrize(
    ("language", "text", "topic"),
    [
        ("zh", "东西不喜欢，可以无理由退货吗", "returns"),
        ("en", "and what is your return policy?", "returns"),
        ("zh", "发票抬头能写公司吗", "invoice"),
        ("en", "Can I have an INVOICE", "invoice"),
        ("zh", "门店周末几点开门", "hours"),
        ("en", "are you open on Sundays, which hours", "hours"),
        ("zh", "能用信用卡分期吗", "payment"),
        ("en", "can I pay by card", "payment"),
        ("zh", "平板的保修期多长", "warranty"),
        ("en", "how long is the warranty", "warranty"),
        ("zh", "多少钱包邮", "postage"),
        ("en", "is there free shipping", "postage"),
    ],
)
async def test_the_best_matching_rule_is_told(ask, language, text, topic):
    outcome = await ask(agent, text, language=language)

    (entry,) = [entry for entry in load_entries() if entry.topic == topic]
    assert outcome.result.data == {"topic": topic}
    assert outcome.result.text == (entry.zh if language == "zh" else entry.en)


@pytest.mark.parametrize(("language", "said"), [("zh", "我可以介绍"), ("en", "I can tell you about")])
async def test_without_a_match_it_says_what_it_knows(ask, language, said):
    outcome = await ask(agent, "???", language=language)

    assert outcome.result.text.startswith(said)
    assert outcome.result.data == {"topic": None}


def test_without_entries_nothing_matches():
    assert best_entry([], "invoice") is None
