import pytest

from dispatcher.dispatch.lifecycle.accept import first_step
from dispatcher.dispatch.lifecycle.request import ChatMessage
from dispatcher.dispatch.lifecycle.session import (
    MAX_CONTEXT_BYTES,
    MAX_KEYS,
    MAX_QUESTIONS,
    MAX_TOPICS,
    Applied,
    Question,
    Session,
    SessionChange,
    apply,
    open_questions,
)
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.identifiers import CallerId, Capability
from dispatcher.intents.plan import Intent
from dispatcher.protocol.frames import ResultBody, ResultStatus
from dispatcher.records import replace
from tests.dispatch.builders import (
    NOW,
    ORDER,
    accepted,
    arrival,
    assigner,
    intent,
    newest,
    published,
    result,
)

EMPTY = Session(caller=CallerId("shop"), session_id="s1")
QUESTION = Question(capability=Capability("order.query"), text="my order", similarity=0.8)


def change(seen: int = 0, **fields: object) -> SessionChange:
    made = SessionChange(caller=CallerId("shop"), session_id="s1", user_id="u1", seen_version=seen)
    return replace(made, **fields)  # type: ignore[arg-type]


def test_an_update_sets_and_removes_keys_and_counts() -> None:
    first = apply(EMPTY, change(update={"city": "上海", "vip": True})).session
    second = apply(first, change(1, update={"vip": None})).session

    assert first.values() == {"city": "上海", "vip": True}
    assert second.values() == {"city": "上海"}
    assert (first.version, second.version, second.user_id) == (1, 2, "u1")


def test_a_key_that_changed_since_it_was_seen_is_not_overwritten() -> None:
    first = apply(EMPTY, change(0, update={"city": "上海"})).session

    applied = apply(first, change(0, update={"city": "北京", "size": "L"}))

    assert applied.conflicts == ("city",)
    assert applied.session.values() == {"city": "上海", "size": "L"}


def test_a_key_that_was_removed_since_it_was_seen_stays_removed() -> None:
    first = apply(EMPTY, change(0, update={"city": "上海"})).session
    removed = apply(first, change(1, update={"city": None})).session

    late, knowing = (apply(removed, change(seen, update={"city": "北京"})) for seen in (1, 2))

    assert (late.conflicts, late.session.values()) == (("city",), {})
    assert knowing.session.values() == {"city": "北京"}


def test_of_removed_keys_the_latest_are_known() -> None:
    session = EMPTY
    for number in range(MAX_KEYS + 5):
        for value in (1, None):
            session = apply(session, change(session.version, update={str(number): value})).session

    assert sorted(map(int, session.context)) == list(range(5, MAX_KEYS + 5))


def test_who_saw_the_newer_value_may_change_it() -> None:
    first = apply(EMPTY, change(0, update={"city": "上海"})).session

    assert apply(first, change(1, update={"city": "北京"})).session.values() == {"city": "北京"}


@pytest.mark.parametrize(
    "update", [{str(n): n for n in range(MAX_KEYS + 1)}, {"long": "x" * MAX_CONTEXT_BYTES}]
)
def test_an_update_over_the_bounds_is_not_taken_at_all(update: dict[str, object]) -> None:
    first = apply(EMPTY, change(update={"city": "上海"})).session

    applied = apply(first, change(1, update=update))

    assert applied.too_large
    assert applied.session.values() == {"city": "上海"}


def test_a_context_at_its_bound_can_still_be_emptied() -> None:
    full = apply(EMPTY, change(update={str(n): n for n in range(MAX_KEYS)})).session

    assert len(apply(full, change(1, update={"0": None})).session.values()) == MAX_KEYS - 1


def test_of_questions_the_latest_are_remembered_until_they_are_closed() -> None:
    asked = apply(EMPTY, change(asked=(QUESTION,) * (MAX_QUESTIONS + 1))).session

    assert len(asked.questions) == MAX_QUESTIONS
    assert apply(asked, change(1)).session.questions == asked.questions
    assert apply(asked, change(1, closed=asked.questions)).session.questions == ()


def test_what_is_asked_last_comes_before_what_is_still_asked() -> None:
    new = replace(QUESTION, text="and this")
    asked = apply(EMPTY, change(asked=(QUESTION,))).session

    assert apply(asked, change(1, asked=(new,))).session.questions == (new, QUESTION)
    assert apply(asked, change(1, closed=(QUESTION,), asked=(new,))).session.questions == (new,)
    full = apply(EMPTY, change(asked=(QUESTION,) * MAX_QUESTIONS)).session
    assert apply(full, change(1, asked=(new,))).session.questions == (new, *full.questions[:-1])


def test_a_question_is_closed_as_often_as_it_was_seen() -> None:
    other = replace(QUESTION, text="the other")
    asked = apply(EMPTY, change(asked=(QUESTION, other, QUESTION))).session

    assert apply(asked, change(1, closed=(QUESTION,))).session.questions == (other, QUESTION)
    assert apply(asked, change(1, closed=(QUESTION,) * 3)).session.questions == (other,)


def answer_to(place: int, session: Session) -> SessionChange:
    """What accepting a message does to the session that it was planned with."""
    message = ChatMessage(message="A1", environment="production", session_id="s1", user_id="u1")
    others = (*session.questions[:place], *session.questions[place + 1 :])
    step = first_step(
        replace(arrival(), message=message, session=session, still_asked=others), NOW, assigner()
    )
    assert step.session is not None
    return step.session


def test_of_answers_planned_side_by_side_each_closes_its_own_question_and_no_newer_one() -> None:
    other, newer = replace(QUESTION, text="the other"), replace(QUESTION, text="asked meanwhile")
    seen = apply(EMPTY, change(asked=(QUESTION, other))).session

    session = apply(seen, change(1, asked=(newer,))).session
    for answer in [answer_to(0, seen), answer_to(1, seen)]:
        session = apply(session, answer).session

    assert session.questions == (newer,)


def test_of_topics_the_latest_are_known() -> None:
    session = EMPTY
    for number in range(MAX_TOPICS + 1):
        session = apply(session, change(session.version, topic=str(number))).session

    assert session.topics == tuple(str(number) for number in range(1, MAX_TOPICS + 1))
    assert apply(session, change(update={"city": "上海"})).session.topics == session.topics


SAID = change(update={"city": "上海"}, asked=(QUESTION,), topic="one")


@pytest.mark.parametrize("users", [("a", "a"), ("a", None), (None, "b"), (None, None)])
def test_a_session_goes_on_with_its_user_and_with_one_who_is_not_named(
    users: tuple[str | None, str | None],
) -> None:
    first, second = users
    session = apply(EMPTY, replace(SAID, user_id=first)).session

    assert session.found_by(second) is session
    after = apply(session, change(1, user_id=second, topic="two")).session
    assert (after.values(), after.questions, after.topics) == ({"city": "上海"}, (QUESTION,), ("one", "two"))
    assert after.user_id == (second or first)


def test_another_user_finds_and_leaves_nothing_of_the_one_before() -> None:
    session = apply(EMPTY, replace(SAID, user_id="a")).session
    newer = replace(QUESTION, text="the other's")

    found = session.found_by("b")
    after = apply(session, change(1, user_id="b", update={"city": "北京"}, asked=(newer,))).session

    assert (found.version, found.values(), found.questions, found.topics) == (1, {}, (), ())
    assert (after.version, after.values(), after.questions, after.topics) == (
        2,
        {"city": "北京"},
        (newer,),
        (),
    )
    assert after.user_id == "b"


def test_what_comes_late_takes_nothing_from_the_user_whose_session_it_is_by_now() -> None:
    begun = apply(EMPTY, change(0, user_id="a", topic="one")).session
    taken = apply(begun, replace(SAID, user_id="b", seen_version=1)).session
    other = replace(QUESTION, text="the first one's")

    late = apply(taken, change(0, user_id="a", update={"size": "L"}, asked=(other,), topic="two"))

    assert late == Applied(session=taken, conflicts=("size",), is_late=True)
    assert (taken.user_id, taken.values(), taken.questions) == ("b", {"city": "上海"}, (QUESTION,))
    own = apply(taken, change(1, user_id="b", update={"size": "M"}))
    assert own.session.values() == {"city": "上海", "size": "M"}


def test_what_saw_a_session_that_was_forgotten_since_does_not_take_over_the_one_begun_after_it() -> None:
    begun = apply(EMPTY, replace(SAID, user_id="b")).session

    assert apply(begun, change(7, user_id="a", update={"size": "L"})).session is begun


def test_missing_inputs_and_what_an_agent_asks_for_become_questions() -> None:
    state = published(
        accepted(intent(0, missing=("order_number",), inputs={"lang": "en"}), intent(1)), position=1
    )
    asked = result(
        newest(state, 1),
        ResultStatus.NEEDS_INPUT,
        result=ResultBody(text="Which size?", data={"fields": ["size"]}),
    )

    ended = settle(state, NOW, asked, assigner()).state

    assert [
        (q.capability, q.text, q.fields, q.inputs) for q in open_questions(ended.tasks, ended.intents)
    ] == [
        (ORDER, "wish 0", ("order_number",), {"lang": "en"}),
        (ORDER, "wish 1", ("size",), {}),
    ]


def test_other_endings_leave_no_question() -> None:
    state = published(accepted())

    ended = settle(state, NOW, result(newest(state)), assigner()).state

    assert open_questions(ended.tasks, ended.intents) == ()


def test_a_request_that_ends_with_questions_leaves_them_to_its_session() -> None:
    missing = intent(0, missing=("order_number",))
    message = ChatMessage(message="where is it", environment="production", session_id="s1", user_id="u1")
    asked = replace(EMPTY, version=3, questions=(QUESTION,))
    planned = replace(arrival(missing), message=message, session=asked)

    step = first_step(planned, NOW, assigner())

    assert step.state.request.session_version == 3
    assert step.session is not None
    assert (step.session.seen_version, step.session.user_id) == (3, "u1")
    assert step.session.closed == (QUESTION,)
    assert [q.fields for q in step.session.asked] == [("order_number",)]


def test_an_answer_leaves_the_other_questions() -> None:
    other = replace(QUESTION, text="the other")
    message = ChatMessage(message="A1", environment="production", session_id="s1")
    asked = replace(EMPTY, questions=(QUESTION, other))
    planned = replace(arrival(), message=message, session=asked, still_asked=(other,))

    step = first_step(planned, NOW, assigner())

    assert step.session is not None
    assert step.session.closed == (QUESTION,)


def test_a_message_takes_the_questions_before_it_away() -> None:
    message = ChatMessage(message="A1", environment="production", session_id="s1")
    planned = replace(arrival(), message=message, session=replace(EMPTY, questions=(QUESTION,)))

    step = first_step(planned, NOW, assigner())

    assert step.session is not None
    assert step.session.closed == (QUESTION,)


def said(*intents: Intent, session: Session | None = EMPTY) -> str | None:
    message = ChatMessage(message="whatever", environment="production", session_id="s1")
    step = first_step(replace(arrival(*intents), message=message, session=session), NOW, assigner())
    return step.session.topic if step.session else None


def test_a_message_leaves_what_it_asked_for_to_its_session() -> None:
    broken, joke = intent(0, text="我的耳机坏了"), intent(1, None, text="给我讲个笑话")

    assert said(broken, joke) == "我的耳机坏了"
    assert said(broken, intent(1, text="快递到哪了")) == "我的耳机坏了 快递到哪了"


def test_a_message_that_names_no_topic_or_that_nobody_can_do_leaves_nothing() -> None:
    broken = intent(0, text="我的耳机坏了")

    assert said(intent(0, text="能修吗")) is None
    assert said(intent(0, None, text="给我讲个笑话")) is None
    assert said(broken, session=None) is None


def test_a_part_without_a_capability_asks_for_nothing_that_could_be_taken_up() -> None:
    (task,) = accepted(intent(0, missing=("order_number",))).tasks

    assert open_questions((replace(task, capability=None),), (intent(0),)) == ()
