"""What a caller sees, whatever database stands behind the gateway."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.dispatch.lifecycle.judgement import Verdict
from tests.conformance.http_agent import http_agent
from tests.conformance.whole import Whole, open_whole
from tests.gateway.bad_inputs import BAD_INPUTS, MARK

TWO_WISHES = "我的订单发货了吗？另外有什么优惠折扣？"


class WholeBehaviour:
    """Subclassed once per database with a `store_url` fixture."""

    @pytest.fixture
    async def whole(self, store_url: str, tmp_path: Path) -> AsyncIterator[Whole]:
        async with open_whole(store_url, tmp_path) as whole:
            yield whole

    async def test_two_wishes_are_answered_in_order_and_the_first_feeds_the_second(
        self, whole: Whole
    ) -> None:
        answer = await whole.chat(TWO_WISHES)

        assert answer["status"] == "completed"
        assert [part["agent_id"] for part in answer["parts"]] == ["order", "promotion"]
        assert answer["answer"] == "订单已发货\n优惠后 2999.0"

    async def test_decisions_and_the_request_can_be_read_back_by_their_caller_only(
        self, whole: Whole
    ) -> None:
        request_id = (await whole.chat(TWO_WISHES))["request_id"]

        mine = await whole.alice.get(f"/v1/requests/{request_id}")
        decisions = await whole.alice.get(f"/v1/requests/{request_id}/decisions")
        others = await whole.bob.get(f"/v1/requests/{request_id}")
        others_decisions = await whole.bob.get(f"/v1/requests/{request_id}/decisions")

        assert mine.json()["status"] == "completed"
        chosen = [d["agent_id"] for d in decisions.json()["decisions"]]
        assert chosen == ["order", "promotion"]
        for decision in decisions.json()["decisions"]:
            looked_at = {c["agent_id"] for c in decision["candidates"]}
            assert {"order", "promotion"} <= looked_at
        assert (others.status_code, others_decisions.status_code) == (404, 404)

    async def test_what_people_say_of_a_routing_is_kept_with_its_decision(self, whole: Whole) -> None:
        request_id = (await whole.chat(TWO_WISHES))["request_id"]
        path = f"/v1/requests/{request_id}/feedback"
        right = {"position": 0, "verdict": "right"}
        wrong = {"position": 1, "verdict": "wrong_capability", "capability": "order.query"}

        first = await whole.alice.post(path, json={"judgements": [{**wrong, "position": 0}]})
        said = await whole.alice.post(path, json={"judgements": [right, wrong]})
        refused = [
            await whole.alice.post(path, json={"judgements": [judgement]})
            for judgement in (
                {**right, "position": 2},
                {**wrong, "capability": "nobody.has.it"},
                {**wrong, "capability": "promotion.quote"},
            )
        ]

        assert (first.status_code, first.json()["code"]) == (422, "contradictory_feedback")
        assert (said.status_code, said.json()["recorded"]) == (200, 2)
        assert [one.json()["code"] for one in refused] == [
            "unknown_intent",
            "unknown_capability",
            "contradictory_feedback",
        ]
        assert (await whole.bob.post(path, json={"judgements": [right]})).status_code == 404
        kept = {past.position: past for past in await whole.past_decisions()}
        assert (kept[0].verdict, kept[0].right_capability) == (Verdict.RIGHT, None)
        assert (kept[1].verdict, kept[1].right_capability) == (Verdict.WRONG_CAPABILITY, "order.query")
        assert (kept[1].decision.capability, kept[1].status) == ("promotion.quote", "completed")

    async def test_bad_bodies_get_the_same_clear_refusal_and_nothing_is_repeated(self, whole: Whole) -> None:
        wrong = []
        for bad in BAD_INPUTS:
            headers = {"Content-Type": bad.content_type} if bad.content_type else {}
            if bad.encoding:
                headers["Content-Encoding"] = bad.encoding
            response = await whole.alice.post("/v1/chat", content=bad.raw, headers=headers)
            seen = (response.status_code, response.json().get("code"))
            if seen != (bad.status, bad.code) or MARK in response.text:
                wrong.append((bad.name, seen))

        assert wrong == []

    @pytest.mark.parametrize(
        "message",
        [
            "😀" * 2000,
            "a" * 20_000,
            "\u202e\u200bhidden",
            "１２３４ ＡＢＣ",
            "🧨\t\r\n。。。，，，",
            "x " * 9000,
        ],
    )
    async def test_strange_but_valid_messages_get_an_answer(self, whole: Whole, message: str) -> None:
        answer = await whole.chat(message)

        assert answer["status"] in {"fallback", "completed", "partial", "failed"}
        assert answer["answer"]

    async def test_the_same_key_gives_the_same_request_even_at_the_same_time(self, whole: Whole) -> None:
        headers = {"Idempotency-Key": '"k1"'}
        body = {"message": "我的订单发货了吗"}

        posts = [whole.alice.post("/v1/chat", json=body, headers=headers) for _ in range(10)]
        responses = await asyncio.gather(*posts)
        bare = await whole.alice.post("/v1/chat", json=body, headers={"Idempotency-Key": "k1"})

        assert {r.status_code for r in [*responses, bare]} == {200}
        assert len({r.json()["request_id"] for r in [*responses, bare]}) == 1
        assert len(whole.shop.runs) == 1

    async def test_a_key_used_with_another_body_is_refused_but_is_free_for_other_callers(
        self, whole: Whole
    ) -> None:
        headers = {"Idempotency-Key": "k1"}
        first = await whole.alice.post("/v1/chat", json={"message": "a"}, headers=headers)

        other_body = await whole.alice.post("/v1/chat", json={"message": "b"}, headers=headers)
        other_caller = await whole.bob.post("/v1/chat", json={"message": "b"}, headers=headers)

        assert (other_body.status_code, other_body.json()["code"]) == (422, "idempotency_key_reused")
        assert other_caller.status_code == 200
        assert other_caller.json()["request_id"] != first.json()["request_id"]

    async def test_what_is_not_granted_looks_out_of_scope_and_is_refused_by_name(self, whole: Whole) -> None:
        asked = await whole.bob.post("/v1/chat", json={"message": "where is my order"})
        named = await whole.bob.post("/v1/chat", json={"message": "x", "capability": "order.query"})

        (part,) = asked.json()["parts"]
        assert (part["status"], part["capability"], part["agent_id"]) == ("out_of_scope", None, None)
        assert (named.status_code, named.json()["code"]) == (403, "capability_not_granted")
        assert whole.shop.runs == []

    async def test_out_of_scope_is_a_fallback_in_the_language_of_the_message(self, whole: Whole) -> None:
        answer = await whole.chat("怎样学好游泳")

        assert answer["status"] == "fallback"
        assert "不在我能处理的范围内" in answer["answer"]

    async def test_respond_async_answers_202_and_the_result_is_read_later(self, whole: Whole) -> None:
        whole.shop.gate.set()
        response = await whole.alice.post(
            "/v1/chat",
            json={"message": "ring", "capability": "secret.slow"},
            headers={"Prefer": "respond-async"},
        )
        location = response.headers["Location"]

        assert response.status_code == 202
        assert (await self._ended(whole, location))["answer"] == "rung"

    async def test_past_the_wait_the_client_gets_202_and_the_request_goes_on(self, whole: Whole) -> None:
        response = await whole.alice.post(
            "/v1/chat", json={"message": "ring", "capability": "secret.slow", "wait_s": 0.05}
        )
        whole.shop.gate.set()

        assert response.status_code == 202
        assert (await self._ended(whole, response.headers["Location"]))["status"] == "completed"

    async def test_a_failing_handler_fails_its_part_and_its_text_stays_inside(self, whole: Whole) -> None:
        answer = await whole.chat("do it", capability="broken.thing")

        (part,) = answer["parts"]
        assert answer["status"] == "failed"
        assert part["attempts"] == 3
        assert part["error"]["code"] == "agent_error"
        assert "hunter2" not in str(answer)

    async def test_no_request_crosses_into_another_environment(self, whole: Whole) -> None:
        production = await whole.chat("rehearse", capability="staging.thing")
        staging = await whole.chat("rehearse", capability="staging.thing", environment="staging")

        assert production["parts"][0]["status"] == "unavailable"
        assert production["parts"][0]["retry_after_s"] >= 1
        assert staging["answer"] == "rehearsed"

    async def test_route_explains_without_sending(self, whole: Whole) -> None:
        response = await whole.alice.post("/v1/route", json={"message": TWO_WISHES})

        chosen = [d["agent_id"] for d in response.json()["decisions"]]
        assert chosen == ["order", "promotion"]
        assert response.json()["intents"][1]["waits_for"] == [0]
        assert whole.shop.runs == []

    async def test_an_agent_registers_over_http_with_its_own_key_only(self, whole: Whole) -> None:
        mine = await whole.agent.post("/v1/agents", json=_registration("clock", "one"))
        again = await whole.agent.post("/v1/agents", json=_registration("clock", "one"))
        sibling = await whole.agent.post("/v1/agents", json=_registration("clock", "two"))
        foreign = await whole.agent.post("/v1/agents", json=_registration("order", "one"))
        by_caller = await whole.alice.post("/v1/agents", json=_registration("clock", "one"))

        assert mine.status_code in (200, 201)
        assert again.json()["lease_id"] != mine.json()["lease_id"]
        assert (sibling.status_code, sibling.json()["code"]) == (409, "private_inbox")
        assert (foreign.status_code, by_caller.status_code) == (403, 403)

    @pytest.mark.parametrize("calls_back", [False, True])
    async def test_an_agent_over_http_answers_at_once_or_calls_back(
        self, whole: Whole, calls_back: bool
    ) -> None:
        async with http_agent(whole.agent, calls_back=calls_back) as endpoint:
            registration = _registration("clock", "one")
            registration["declaration"] |= {"channel": "http", "endpoint": endpoint}
            registered = await whole.agent.post("/v1/agents", json=registration)

            answer = await whole.chat("what time is it", capability="time.tell")

        assert registered.status_code in (200, 201), registered.text
        assert (answer["status"], answer["answer"]) == ("completed", "It is noon.")

    async def test_a_fenced_lease_can_do_nothing_more(self, whole: Whole) -> None:
        old = (await whole.agent.post("/v1/agents", json=_registration("clock", "one"))).json()
        new = (await whole.agent.post("/v1/agents", json=_registration("clock", "one"))).json()

        beats = [
            await whole.agent.post("/v1/agents/clock/heartbeat", json=_beat(lease)) for lease in (old, new)
        ]

        assert beats[0].status_code == 409
        assert beats[0].json()["code"] == "lease_superseded"
        assert beats[1].status_code < 300

    async def test_the_dispatcher_says_that_it_is_ready_and_when_it_stops(self, whole: Whole) -> None:
        ready = await whole.alice.get("/readyz")
        whole.running.stop()
        stopping = await whole.alice.get("/readyz")
        refused = await whole.alice.post("/v1/chat", json={"message": "a"})

        assert ready.status_code == 200
        assert stopping.status_code == 503
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) >= 1

    @staticmethod
    async def _ended(whole: Whole, location: str) -> dict[str, Any]:
        request_id = location.rsplit("/", 1)[1]
        await whole.running.dispatcher.wait(request_id, 10)  # type: ignore[arg-type]
        document: dict[str, Any] = (await whole.alice.get(location)).json()
        return document


def _registration(agent_id: str, instance: str) -> dict[str, Any]:
    capability = {"name": "time.tell", "descriptions": ["tells the time"], "idempotent": True}
    return {
        "agent_id": agent_id,
        "instance_name": instance,
        "instance_id": f"{agent_id}-{instance}",
        "declaration": {"channel": "in-process", "capabilities": [capability]},
    }


def _beat(lease: dict[str, Any]) -> dict[str, Any]:
    return {"instance_id": lease["instance_id"], "lease_id": lease["lease_id"], "running": 0}
