import pytest

from dispatcher.dispatch.lifecycle.answer import SENTENCES, merge_answer, part_sentence, request_status
from dispatcher.dispatch.lifecycle.expire import expire
from dispatcher.dispatch.lifecycle.part import parts
from dispatcher.dispatch.lifecycle.request import RequestStatus, TaskStatus
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.records import replace
from dispatcher.routing.decision import Outcome
from tests.dispatch.builders import NOW, Agents, accepted, assigner, intent, link, newest, result, task_of

DONE = TaskStatus.COMPLETED
OUT = TaskStatus.OUT_OF_SCOPE
FAILED = TaskStatus.FAILED
ASKS = TaskStatus.NEEDS_INPUT
THEIRS = TaskStatus.HANDED_OFF


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([DONE, DONE], RequestStatus.COMPLETED),
        ([OUT, OUT], RequestStatus.FALLBACK),
        ([DONE, OUT], RequestStatus.PARTIAL),
        ([DONE, FAILED], RequestStatus.PARTIAL),
        ([ASKS], RequestStatus.PARTIAL),
        ([FAILED, OUT], RequestStatus.FAILED),
        ([OUT, THEIRS], RequestStatus.FALLBACK),
        ([THEIRS, TaskStatus.UNAVAILABLE], RequestStatus.PARTIAL),
        ([THEIRS, TaskStatus.SKIPPED], RequestStatus.PARTIAL),
        ([TaskStatus.UNAVAILABLE], RequestStatus.FAILED),
    ],
)
def test_the_requests_status_sums_up_its_parts(statuses: list[TaskStatus], expected: RequestStatus) -> None:
    task = task_of(accepted())

    assert request_status([replace(task, status=s) for s in statuses]) is expected


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("status", [s for s in TaskStatus if s.is_terminal])
def test_every_way_to_end_has_a_sentence_in_both_languages(language: str, status: TaskStatus) -> None:
    task = replace(task_of(accepted()), status=status, reason="order_number")

    sentence = part_sentence(language, task, (replace(intent(0), text="my wish"),))

    assert "my wish" in sentence
    assert "{" not in sentence
    assert set(SENTENCES[language]) == {s for s in TaskStatus if s.is_terminal}


def test_the_answer_keeps_the_order_asked_and_says_what_failed() -> None:
    state = accepted(intent(0), intent(1))
    first = replace(task_of(state, 0), status=FAILED, error_code="agent_error")
    second = replace(task_of(state, 1), status=DONE, result_text="It ships tomorrow.")

    answer = merge_answer("en", (first, second), state.intents)

    assert answer.splitlines()[1] == "It ships tomorrow."
    assert "wish 0" in answer.splitlines()[0]


def test_a_long_intent_is_quoted_shortened_and_other_languages_get_english() -> None:
    task = replace(task_of(accepted()), status=FAILED)

    sentence = part_sentence("fr", task, (replace(intent(0), text="x" * 500),))

    assert "x" * 59 + "…" in sentence
    assert len(sentence) < 150


def test_parts_show_result_or_error_and_the_time_taken() -> None:
    state = accepted()
    done = settle(state, NOW + 40, result(newest(state)), assigner()).state

    (part,) = parts(done)

    assert part["result"] == {"text": "done", "data": {"amount": 12.5}}
    assert part["error"] is None
    assert part["elapsed_ms"] == 40
    assert part["attempts"] == 1


def test_an_out_of_scope_part_names_no_capability() -> None:
    (part,) = parts(accepted(by=assigner(Agents(outcome=Outcome.OUT_OF_SCOPE))))

    assert part["capability"] is None
    assert part["error"] is not None
    assert part["error"]["code"] == "out_of_scope"


def test_a_part_still_open_has_no_elapsed_time() -> None:
    (part,) = parts(accepted())

    assert part["elapsed_ms"] is None
    assert part["status"] is TaskStatus.OPEN


@pytest.mark.parametrize("text", ['{"raw": 1}', " [1, 2]", "[]"])
def test_an_agents_json_is_never_shown_to_a_person(text: str) -> None:
    task = replace(task_of(accepted()), status=DONE, result_text=text)

    assert part_sentence("en", task, (intent(0),)) == "“wish 0” is done."


def test_text_that_only_begins_like_json_is_shown() -> None:
    task = replace(task_of(accepted()), status=DONE, result_text="[note] all is well")

    assert part_sentence("en", task, (intent(0),)) == "[note] all is well"


def test_missing_fields_are_asked_for_in_the_words_of_their_schema() -> None:
    asked = intent(0, missing=("city",), labels=("the city the weather is for",))

    state = accepted(asked)

    assert state.request.answer == "To handle “wish 0” I still need: the city the weather is for."


def test_a_skipped_part_names_what_it_waited_for() -> None:
    quote = intent(1, links=(link("amount", (0, "amount"), required=True),))

    state = accepted(intent(0, missing=("order_number",)), quote)

    assert "“wish 1” needs the outcome of “wish 0”" in (state.request.answer or "")


def test_a_part_that_still_waited_at_the_deadline_names_what_it_waited_for() -> None:
    by = assigner()
    state = accepted(intent(0), intent(1, links=(link("amount", (0, "amount")),)), by=by)

    ended = expire(state, state.request.deadline_ms, by).state

    assert "“wish 1” needs the outcome of “wish 0”" in (ended.request.answer or "")


@pytest.mark.parametrize(
    ("data", "asked"),
    [
        ({"fields": ["size", "color"]}, "size, color"),
        ({}, "more information"),
        ({"fields": 3}, "more information"),
    ],
)
def test_an_agent_that_asks_without_words_still_gives_a_question(data: dict[str, object], asked: str) -> None:
    task = replace(task_of(accepted()), status=ASKS, result_data=data)

    assert part_sentence("en", task, (intent(0),)) == f"To handle “wish 0” I still need: {asked}."


def test_nobody_is_told_to_repeat_what_may_have_been_done() -> None:
    task = replace(task_of(accepted()), status=TaskStatus.OUTCOME_UNKNOWN, error_code="timeout")

    assert "please check before you try again" in part_sentence("en", task, (intent(0),))


def test_an_open_part_tells_how_far_its_attempt_is_and_an_ended_one_no_more() -> None:
    silent = accepted()
    said = {"fraction": 0.25, "note": "a quarter"}
    at_work = replace(silent, attempts=(replace(newest(silent), progress=said),))
    done = settle(at_work, NOW, result(newest(at_work)), assigner()).state

    assert [parts(state)[0]["progress"] for state in (silent, at_work, done)] == [None, said, None]
