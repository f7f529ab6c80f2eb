"""Declared and asked texts are read in one form, by the encoder and by the word index."""

import pytest

from dispatcher.routing.prepared import MAX_CHARACTERS, prepared


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("where is  my\nparcel ", "where is my parcel"),
        ("查詢訂單", "查询订单"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("ＶＩＰ１，谢谢", "VIP1,谢谢"),
        ("x" * 1000, "x" * MAX_CHARACTERS),
        ("x" * (MAX_CHARACTERS - 1) + " y", "x" * (MAX_CHARACTERS - 1)),
        (" \u3000", ""),
    ],
)
def test_a_text_has_one_form(text, read):
    assert prepared(text) == read
    assert prepared(read) == read


@pytest.mark.parametrize(
    ("declared", "asked"),
    [("查詢訂單", "查询订单"), ("ＶＩＰ１", "VIP1"), ("Cafe\u0301", "Caf\u00e9")],
)
async def test_whoever_asks_in_another_form_than_was_declared_is_understood_alike(
    router_of, an_agent, a_capability, declared, asked
):
    router = router_of()
    agents = [an_agent("a", a_capability("one", declared)), an_agent("b", a_capability("two", "x y z"))]
    await router.sync(agents, 1)

    of_one, of_other = await router.rank([declared, asked])

    assert of_one.capabilities == of_other.capabilities
    assert of_one.winner.capability == "one"
    assert of_one.winner.score > of_one.winner.cosine  # words were shared


async def test_of_a_long_text_words_count_as_far_as_it_is_encoded(router_of, an_agent, a_capability):
    router = router_of()
    agents = [an_agent("a", a_capability("one", "parcel")), an_agent("b", a_capability("two", "refund"))]
    await router.sync(agents, 1)
    begun = "parcel " * 100

    cut, whole = await router.rank([begun, begun + "refund " * 500])

    assert cut.capabilities == whole.capabilities


async def test_a_trial_reads_texts_as_routing_does(router_of, an_agent, a_capability):
    router = router_of()

    of_one, of_other = await router.trial(
        an_agent("a", a_capability("one", "查詢訂單")), ["查詢訂單", "查询订单"]
    )

    assert of_one.capabilities == of_other.capabilities
