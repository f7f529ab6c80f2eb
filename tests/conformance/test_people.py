"""Asking which one, matching what a caller describes, and parts that people do, on either database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dispatcher.store.engine import open_engine
from dispatcher.store.retention import forget
from tests.conformance.front_desk import ANYTHING, NONSENSE, ORDER, PARCEL, QUOTE, UNCLEAR, only, opened
from tests.conformance.whole import Whole


@pytest.fixture
async def asking(store_url: str, tmp_path: Path) -> AsyncIterator[Whole]:
    async with opened(store_url, tmp_path, encoder="use", clarify_margin=0.2) as whole:
        yield whole


@pytest.fixture
async def people(store_url: str, tmp_path: Path) -> AsyncIterator[Whole]:
    async with opened(
        store_url,
        tmp_path,
        fallback="people",
        synonyms={"查包裹": PARCEL},
        semantic=True,
        semantic_off=["staging"],
    ) as whole:
        yield whole


@pytest.fixture
async def describing(store_url: str, tmp_path: Path) -> AsyncIterator[Whole]:
    """With an encoder that knows meanings; nobody is asked which one."""
    async with opened(store_url, tmp_path, encoder="use", semantic=True) as whole:
        yield whole


async def test_an_unclear_message_is_asked_about_in_its_language_and_a_number_answers(asking: Whole) -> None:
    asked = await asking.chat(UNCLEAR, session_id="s1")

    answered = await asking.chat("1", session_id="s1")

    part = only(asked)
    assert (asked["status"], part["status"], part["error"]["code"]) == ("partial", "clarify", "ambiguous")
    assert asked["answer"] == f"“{UNCLEAR}”指的是哪一个？1. 查询包裹物流位置；2. 查询订单发货状态"
    assert [(one["number"], one["capability"]) for one in part["options"]] == [(1, PARCEL), (2, ORDER)]
    assert (answered["status"], answered["answer"]) == ("completed", f"包裹：{UNCLEAR}")
    assert only(answered)["similarity"] == part["options"][0]["similarity"]


async def test_a_name_or_a_clear_text_answers_too(asking: Whole) -> None:
    for reply, capability in (("parcel.track", PARCEL), ("包裹那个", PARCEL), ("订单的状态", ORDER)):
        await asking.chat(UNCLEAR, session_id=reply)

        answered = only(await asking.chat(reply, session_id=reply))

        assert (answered["intent"], answered["capability"]) == (UNCLEAR, capability)
        assert answered["status"] == "completed"


async def test_any_other_message_is_routed_afresh_and_the_question_is_over(asking: Whole) -> None:
    await asking.chat(UNCLEAR, session_id="s1")

    other = await asking.chat("有什么优惠折扣", session_id="s1")
    late = await asking.chat("1", session_id="s1")

    assert (only(other)["capability"], only(late)["intent"]) == (QUOTE, "1")


async def test_without_a_session_nothing_is_remembered_and_the_caller_may_name_an_option(
    asking: Whole,
) -> None:
    option = only(await asking.chat(UNCLEAR))["options"][1]

    named = await asking.chat(UNCLEAR, capability=option["capability"])

    assert only(await asking.chat("1"))["intent"] == "1"
    assert (only(named)["status"], only(named)["capability"]) == ("completed", ORDER)


async def test_what_a_caller_may_not_use_is_no_option_for_it(asking: Whole) -> None:
    response = await asking.bob.post("/v1/chat", json={"message": "我的订单到哪里了"})

    assert only(response.json())["status"] != "clarify"
    explained = await asking.bob.post("/v1/route", json={"message": UNCLEAR})
    assert PARCEL not in explained.text


async def test_explanations_and_streams_tell_the_question(asking: Whole) -> None:
    body, headers = {"message": UNCLEAR}, {"Accept": "text/event-stream"}
    explained = (await asking.alice.post("/v1/route", json=body)).json()
    streamed = await asking.alice.post("/v1/chat", json=body, headers=headers)

    (decision,) = explained["decisions"]
    assert (decision["outcome"], decision["reason"]) == ("clarify", "ambiguous")
    assert [one["capability"] for one in decision["options"]] == [PARCEL, ORDER]
    assert '"status":"clarify"' in streamed.text


async def test_off_nobody_is_asked(describing: Whole) -> None:
    assert only(await describing.chat(UNCLEAR))["status"] == "completed"


async def test_what_nobody_can_do_goes_to_a_person_whose_answer_the_caller_sees(people: Whole) -> None:
    asked = await people.chat(NONSENSE)

    (waiting,) = (await people.admin.get("/v1/handoffs")).json()["handoffs"]
    path = f"/v1/handoffs/{waiting['task_id']}/answer"
    replies = [
        await people.admin.post(path, json={"answer": words})
        for words in ("从前有座山", "从前有座山", "没有")
    ]
    seen = only((await people.alice.get(f"/v1/requests/{asked['request_id']}")).json())

    assert (asked["status"], only(asked)["status"]) == ("fallback", "handed_off")
    assert only(asked)["handoff"] == {"state": "open", "answer": None, "answered_ms": None}
    assert "人工" in asked["answer"]
    assert (waiting["request_id"], waiting["caller"], waiting["text"]) == (
        asked["request_id"],
        "alice",
        NONSENSE,
    )
    assert (waiting["state"], waiting["published_ms"], waiting["described"]) == ("open", None, None)
    assert [one.status_code for one in replies] == [200, 200, 409]
    assert replies[2].json()["code"] == "already_answered"
    assert (seen["handoff"]["state"], seen["handoff"]["answer"]) == ("answered", "从前有座山")
    assert (await people.admin.get("/v1/handoffs")).json()["handoffs"] == []
    (done,) = (await people.admin.get("/v1/handoffs?answered=true")).json()["handoffs"]
    assert (done["answer"], done["answered_by"]) == ("从前有座山", "root")


async def test_the_other_parts_do_not_wait_for_a_person(people: Whole) -> None:
    answer = await people.chat(f"有什么优惠折扣？另外{NONSENSE}")

    assert [part["status"] for part in answer["parts"]] == ["completed", "handed_off"]
    assert answer["status"] == "partial"


async def test_what_is_not_granted_goes_to_a_person_like_any_other_text(people: Whole) -> None:
    bodies = [
        (await people.bob.post("/v1/chat", json={"message": text})).json()
        for text in ("我的包裹到哪里了", NONSENSE)
    ]

    told = [(part["status"], part["capability"], part["error"]["code"]) for part in map(only, bodies)]
    assert told == [("handed_off", None, "handed_off")] * 2


async def test_handed_over_parts_go_with_their_request(people: Whole) -> None:
    await people.chat(NONSENSE, user_id="u1")

    async with open_engine(people.running.settings.store_url) as database:
        await forget(database, "u1")

    assert (await people.admin.get("/v1/handoffs")).json()["handoffs"] == []


async def test_the_oldest_waits_first(people: Whole) -> None:
    texts = [NONSENSE, "帮我把头发剪短"]
    for text in texts:
        await people.chat(text)

    listed = (await people.admin.get("/v1/handoffs")).json()["handoffs"]
    (first,) = (await people.admin.get("/v1/handoffs?limit=1")).json()["handoffs"]

    assert [one["text"] for one in listed] == texts
    assert first == listed[0]


async def test_nothing_of_an_unknown_id_can_be_answered(people: Whole) -> None:
    for task_id in ("nothing", "a.b", "%00"):
        reply = await people.admin.post(f"/v1/handoffs/{task_id}/answer", json={"answer": "x"})
        assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


async def test_an_alias_is_matched_loosely(people: Whole) -> None:
    found = await people.chat("在哪里", capability=" 查包裹 ", match="loose")
    guesses = [
        {"message": "在哪里", "capability": name, "match": match}
        for name, match in (("查包裹", "loose"), (PARCEL, "loose"), ("查快递", "loose"), (PARCEL, "strict"))
    ]

    assert (only(found)["capability"], found["answer"]) == (PARCEL, "包裹：在哪里")
    told = [(await people.bob.post("/v1/chat", json=guess)).json() for guess in guesses]
    assert told == [told[0]] * 4
    assert (told[0]["status"], told[0]["code"]) == (403, "capability_not_granted")


async def test_a_clear_description_is_acted_on_and_any_other_goes_to_a_person(describing: Whole) -> None:
    """The second is in scope, and not near enough; of the last one Bob must not learn that it is there."""
    clear = await describing.chat("A123", capability="包裹的物流", match="semantic")
    unclear = [
        only(await describing.chat("A123", capability=text, match="semantic")) for text in (UNCLEAR, "剪头发")
    ]
    hidden = {"message": "A123", "capability": "包裹的物流", "match": "semantic"}
    bobs = only((await describing.bob.post("/v1/chat", json=hidden)).json())

    assert (only(clear)["capability"], clear["answer"]) == (PARCEL, "包裹：A123")
    assert only(clear)["similarity"] >= 0.95
    told = [(part["status"], part["capability"]) for part in (*unclear, bobs)]
    assert told == [("handed_off", None)] * 3
    listed = (await describing.admin.get("/v1/handoffs")).json()["handoffs"]
    assert [(one["caller"], one["text"], one["described"]) for one in listed] == [
        ("alice", "A123", UNCLEAR),
        ("alice", "A123", "剪头发"),
        ("bob", "A123", "包裹的物流"),
    ]


async def test_descriptions_are_refused_where_they_are_switched_off(people: Whole, asking: Whole) -> None:
    """They are unless the operator switches them on."""
    body = {"message": "A123", "capability": "包裹的物流", "match": "semantic", "environment": "staging"}

    reply = await people.alice.post("/v1/chat", json=body)

    assert (reply.status_code, reply.json()["code"]) == (422, "semantic_match_off")
    by_default = await asking.alice.post("/v1/chat", json={**body, "environment": "production"})
    assert (by_default.status_code, by_default.json()["code"]) == (422, "semantic_match_off")


async def test_a_message_with_a_key_is_replayed_whatever_it_was_matched_by(people: Whole) -> None:
    for match, wanted in (("loose", "查包裹"), ("semantic", "剪头发")):
        body = {"message": "A123", "capability": wanted, "match": match}
        mine = {"Idempotency-Key": f"key-{match}"}
        first, again = [await people.alice.post("/v1/chat", json=body, headers=mine) for _ in range(2)]

        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.json()["request_id"] == first.json()["request_id"]


async def test_a_fallback_capability_takes_what_nobody_else_can_if_it_is_granted(
    store_url: str, tmp_path: Path
) -> None:
    async with opened(store_url, tmp_path, fallback="agent", fallback_capability=ANYTHING) as whole:
        taken = await whole.chat(NONSENSE)
        refused = (await whole.bob.post("/v1/chat", json={"message": NONSENSE})).json()
        decisions = await whole.alice.get(f"/v1/requests/{taken['request_id']}/decisions")

    assert (taken["status"], taken["answer"]) == ("completed", f"我来处理：{NONSENSE}")
    assert (only(taken)["capability"], only(taken)["agent_id"]) == (ANYTHING, "receptionist")
    assert (refused["status"], only(refused)["status"]) == ("fallback", "out_of_scope")
    (decision,) = decisions.json()["decisions"]
    assert (decision["outcome"], decision["reason"]) == ("selected", "fallback")
