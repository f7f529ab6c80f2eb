"""A part that is not clear asks back, and the session remembers what."""

from collections.abc import Mapping

import pytest

from dispatcher.dispatch.lifecycle.accept import first_step
from dispatcher.dispatch.lifecycle.assign import Assignment
from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.option import (
    DESCRIPTION_CHARACTERS,
    DescribedOption,
    description_for,
    options_document,
    read_options,
)
from dispatcher.dispatch.lifecycle.part import parts
from dispatcher.dispatch.lifecycle.request import Request, RequestStatus, Task, TaskStatus
from dispatcher.dispatch.lifecycle.session import open_questions
from dispatcher.identifiers import AgentId
from dispatcher.intents.plan import Intent
from dispatcher.records import replace
from dispatcher.routing.decision import Outcome
from tests.dispatch.builders import (
    NOW,
    ORDER,
    QUOTE,
    Agents,
    accepted,
    arrival,
    assigner,
    decision,
    intent,
    link,
)

OPTIONS = (
    DescribedOption(capability=ORDER, description="looks up orders", similarity=0.9),
    DescribedOption(capability=QUOTE, description="computes discounts", similarity=0.8),
)


class Unsure(Agents):
    """Finds two capabilities too near to one another."""

    def __call__(
        self,
        request: Request,
        intent: Intent,
        task: Task,
        tried: frozenset[AgentId],
        inputs: Mapping[str, object] | None = None,
    ) -> Assignment:
        return Assignment(decision=decision(None, Outcome.CLARIFY), options=OPTIONS)


def asked(*intents: Intent, language: str = "en", session: str | None = "s1") -> Step:
    made = arrival(*intents, language=language)
    made = replace(made, message=replace(made.message, session_id=session))
    return first_step(made, NOW, assigner(Unsure()))


def test_the_request_ends_with_the_question_and_its_options() -> None:
    state = asked().state

    (part,) = parts(state)
    assert state.request.status is RequestStatus.PARTIAL
    assert (
        state.request.answer == "Which one do you mean by “wish 0”? 1. looks up orders; 2. computes discounts"
    )
    assert (part["status"], part["capability"], part["result"]) == (TaskStatus.CLARIFY, None, None)
    assert part["error"] == {"code": "ambiguous", "message": state.request.answer}
    assert part["options"] == [
        {"number": 1, "capability": ORDER, "description": "looks up orders", "similarity": 0.9},
        {"number": 2, "capability": QUOTE, "description": "computes discounts", "similarity": 0.8},
    ]


def test_it_asks_in_the_language_of_the_message() -> None:
    assert asked(language="zh").state.request.answer == (
        "“wish 0”指的是哪一个？1. looks up orders；2. computes discounts"
    )


def test_it_asks_before_it_asks_for_inputs() -> None:
    (task,) = asked(intent(0, missing=("order_number",))).state.tasks

    assert task.status is TaskStatus.CLARIFY


def test_what_waits_for_it_is_skipped() -> None:
    state = asked(intent(0), intent(1, QUOTE, links=(link("amount", (0, "amount"), required=True),))).state

    assert state.tasks[0].status is TaskStatus.CLARIFY
    assert state.tasks[1].status is not TaskStatus.WAITING
    assert state.request.status is RequestStatus.PARTIAL


def test_the_session_remembers_the_text_and_the_options() -> None:
    change = asked(intent(0, inputs={"order_number": "A1"})).session

    assert change is not None
    (question,) = change.asked
    assert (question.text, question.options) == ("wish 0", ((ORDER, 0.9), (QUOTE, 0.8)))
    assert (question.capability, question.inputs) == (ORDER, {})


def test_a_part_that_lost_its_options_asks_nothing() -> None:
    state = accepted()
    task = replace(state.tasks[0], status=TaskStatus.CLARIFY, result_data=None)

    assert open_questions([task], state.intents) == ()


def test_options_are_kept_with_the_task() -> None:
    assert read_options(options_document(OPTIONS)) == OPTIONS
    assert read_options(None) == read_options({}) == ()


@pytest.mark.parametrize(
    ("descriptions", "language", "told"),
    [
        (["looks up orders", "查询订单"], "zh", "查询订单"),
        (["查询订单", "looks up orders"], "en", "looks up orders"),
        (["查询订单", "looks up orders"], "de", "looks up orders"),
        (["查询订单"], "en", "查询订单"),
        ([], "en", "order.query"),
    ],
)
def test_a_capability_is_told_in_the_language_where_it_has_words_in_it(
    descriptions: list[str], language: str, told: str
) -> None:
    assert description_for(descriptions, ORDER, language) == told


def test_a_long_description_is_cut() -> None:
    told = description_for(["x" * 200], ORDER, "en")

    assert (len(told), told[-1]) == (DESCRIPTION_CHARACTERS, "…")
