"""Lines become rows; a flaw is named by file and line and never repeated."""

import json

import pytest

from dispatcher.errors import RequestError
from dispatcher.protocol.declaration import CapabilityDeclaration
from dispatcher.tuning.basis.rows import (
    AgentRow,
    RequestRow,
    agent_rows,
    capability_names,
    renamed,
    repeats,
    request_rows,
    same_text,
    unregistered_rows,
    with_examples,
)
from tests.tuning.sets import agent, request

NAMES = capability_names(["Order", "refund"])


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows)


def test_an_agent_has_its_descriptions_and_examples_without_empty_ones():
    (row,) = agent_rows(
        lines(agent("Order", [" where is it ", ""], desc_zh=None, desc_de="  ", desc_fr="je fais")), "a"
    )

    assert row == AgentRow(
        source_id="Order", descriptions=("I do Order", "je fais"), examples=("where is it",)
    )


def test_empty_lines_between_rows_count_but_are_no_rows():
    text = f"{lines(agent('a'))}\n\n{lines(agent('b'))}\n"

    assert [row.source_id for row in agent_rows(text, "a")] == ["a", "b"]
    with pytest.raises(RequestError, match=r"^f, line 4: "):
        agent_rows(f"{text}nonsense", "f")


def test_texts_beyond_a_declarations_limit_are_cut_and_counted():
    (row,) = agent_rows(lines(agent("a", ["x" * 501, "y" * 500], desc_en="z" * 700)), "a")

    assert row.shortened == 2
    assert [len(text) for text in (*row.descriptions, *row.examples)] == [500, 500, 500]


@pytest.mark.parametrize(
    ("row", "flaw"),
    [
        ([], "not a JSON object"),
        (agent("a") | {"id": 3}, "'id' must be a text"),
        (agent("a") | {"id": " "}, "'id' must be a text"),
        (agent("a") | {"desc_en": ""}, "1 to 4 descriptions"),
        (agent("a") | {f"desc_{one}": "secret" for one in range(4)}, "1 to 4 descriptions"),
        (agent("a") | {"desc_en": 3}, "'desc_en' must be a text"),
        (agent("a") | {"desc_en": ["secret"]}, "'desc_en' must be a text"),
        (agent("a") | {"desc_en": " \t"}, "1 to 4 descriptions"),
        (agent("a") | {"examples": "secret"}, "'examples' must be a list of texts"),
        (agent("a") | {"examples": ["secret", 3]}, "'examples' must be a list of texts"),
        (agent("known"), "this 'id' is there twice"),
    ],
)
def test_a_flawed_agent_is_refused_with_its_place(row, flaw):
    with pytest.raises(RequestError, match=f"^f, line 2: {flaw}") as raised:
        agent_rows(lines(agent("known"), row), "f")

    assert "secret" not in raised.value.message
    assert raised.value.error_code == "invalid_dataset"


def test_a_file_without_agents_is_refused():
    with pytest.raises(RequestError, match="f holds no agents"):
        agent_rows("\n", "f")


def test_a_request_wants_capabilities_or_nothing():
    one, none, several = request_rows(
        lines(
            request(" hi ", "Order"),
            {"text": "hm", "agents": []},
            request("both", "refund", "Order", parts=["a", "b"]),
        ),
        "f",
        NAMES,
    )

    assert one == RequestRow(text="hi", language="en", wanted=frozenset({NAMES["Order"]}))
    assert none == RequestRow(text="hm", language="und", wanted=frozenset())
    assert (several.wanted, several.has_parts) == (frozenset(NAMES.values()), True)


@pytest.mark.parametrize(
    ("row", "flaw"),
    [
        ({"text": "secret"}, "'agents' is missing"),
        (request("secret", "order"), "'agents' names 'order', which is not among the agents"),
        (request("secret") | {"agents": "Order"}, "'agents' must be a list"),
        (request("", "Order"), "'text' must be a text"),
        (request("secret", lang=3), "'lang' must be a text"),
    ],
)
def test_a_flawed_request_is_refused_with_its_place(row, flaw):
    with pytest.raises(RequestError, match=f"^f, line 2: {flaw}") as raised:
        request_rows(lines(request("fine"), row), "f", NAMES)

    assert "secret" not in raised.value.message


def test_every_id_becomes_a_capability_name_of_its_own():
    ids = ["getX", "GETX", "PDF&URLTool", "reverted?", "first aid", "??", "物流", "n" * 80, "n" * 70]

    names = capability_names(ids)

    assert list(names.values())[:5] == ["getx", "getx.2", "pdf-urltool", "reverted", "first-aid"]
    assert len(set(names.values())) == len(ids)
    for name in names.values():
        CapabilityDeclaration(name=name, descriptions=["x"])
    assert renamed(names).keys() == set(ids) - {"getX"}


@pytest.mark.parametrize(
    ("limit", "examples"), [(0, ()), (1, ("a",)), (3, ("a", "b", "c")), (9, ("a", "b", "c"))]
)
def test_examples_are_its_own_first_then_those_of_the_pool(limit, examples):
    row = AgentRow(source_id="x", descriptions=("d",), examples=("a", "b", "a"), shortened=1)

    chosen = with_examples(row, limit, ["b", "c"])

    assert (chosen.examples, chosen.descriptions, chosen.shortened) == (examples, ("d",), 1)


def asked(*texts):
    return [RequestRow(text=text, language="en", wanted=frozenset()) for text in texts]


def test_rows_whose_text_any_of_several_registries_has_are_no_rows_to_ask():
    one, other = (
        {NAMES["Order"]: AgentRow(source_id="o", descriptions=("I do Order",), examples=(text,))}
        for text in ("where is it", "has it left")
    )
    rows = asked("Where is  it", "has it left", "I DO ORDER", "is it here")

    assert [row.text for row in unregistered_rows(rows, one)] == ["has it left", "is it here"]
    assert [row.text for row in unregistered_rows(rows, one, other)] == ["is it here"]
    assert unregistered_rows(rows) == tuple(rows)


def test_a_text_that_came_before_repeats_it_however_it_is_written():
    assert repeats(asked("hi", "HI ", "ho", "hi")) == 2
    assert repeats([]) == 0


@pytest.mark.parametrize("other", ["我的訂單在哪裡?", "我的订单在哪里？", " 我的订单在哪里? "])
def test_texts_that_routing_reads_as_one_are_the_same(other):
    assert same_text(other) == same_text("我的订单在哪里?")
