"""The dispatcher is gone: who may still call whom, and what is done how often."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from dispatcher.errors import UnavailableError
from dispatcher.identifiers import CallerId, Capability, callers_key, new_id
from dispatcher.sdk.client import CallError, Client
from dispatcher.sdk.direct_calls import DirectRules
from dispatcher.sdk.known_routes import Wish
from tests.conformance.direct_world import (
    CANCEL,
    CREDENTIAL,
    QUERY,
    Direct,
    dropping,
    gateway_of,
    open_direct,
)

RULES = DirectRules(connect_s=1.0)


@asynccontextmanager
async def caller(world: Direct, url: str | None = None, who: str = "alice") -> AsyncIterator[Client]:
    async with Client(url or world.url, world.keys[who], fallback=RULES) as client:
        yield client


@pytest.fixture
def store_url(upgraded_sqlite_url: str) -> str:
    return upgraded_sqlite_url


async def ticket_of(world: Direct, capability: str = QUERY) -> str:
    async with caller(world) as client:
        (found,) = (await client.candidates(capability))["candidates"]
    return str(found["direct"]["ticket"])


def frame(capability: str = QUERY, *, of: str = "alice", key: str = "k1", **changes: Any) -> dict[str, Any]:
    """A task as a caller posts it."""
    task_key = callers_key(CallerId(of), Capability(capability), key, "hello")
    made = {
        "request_id": "r1",
        "task_id": "r1.0",
        "attempt": 1,
        "idempotency_key": task_key,
        "token": "t" * 32,
        "agent_id": "shop",
        "capability": capability,
        "payload": {"text": "hello"},
        "context": {"caller": of},
        "budget_ms": 5000,
        "start_within_ms": 5000,
        "reply_to": "",
    }
    return {**made, **changes}


async def post(world: Direct, task: dict[str, Any], **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient() as client:
        return await client.post(world.endpoint, content=json.dumps(task), headers=headers)


async def test_a_callers_candidates_are_those_of_the_dispatchers_next_decision(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world, caller(world) as client:
        route = await client.candidates(QUERY)

    (found,) = route["candidates"]
    assert (route["caller"], route["throttled"], route["inputs"]) == ("alice", False, [])
    assert 100 <= route["retry_after_ms"] <= 800
    assert (found["agent_id"], found["running"], found["capacity"], found["throttled"]) == (
        "shop",
        0,
        4,
        False,
    )
    assert (found["idempotent"], found["timeout_ms"], found["p95_ms"]) == (True, 30_000, None)
    assert found["score"] == pytest.approx(0.5 + 0.3 * 0.8 + 0.2)
    assert found["direct"]["endpoint"] == world.endpoint
    assert 900 <= found["direct"]["expires_in_s"] <= 4500


async def test_a_full_agent_is_throttled_and_tells_how_slow_it_is(store_url, tmp_path):
    load = {"requests": 40, "p95_ms": 750.0}
    async with open_direct(store_url, tmp_path) as world, caller(world) as client:
        lease = await world.register()
        await world.beat(lease, running=4, p95_ms=900.0, capabilities={QUERY: load})
        query, cancel = [await client.candidates(capability) for capability in (QUERY, CANCEL)]

    assert (query["throttled"], cancel["throttled"]) == (True, True)
    assert [one["candidates"][0]["p95_ms"] for one in (query, cancel)] == [750.0, 900.0]
    assert query["candidates"][0]["running"] == 4


async def test_agents_of_another_environment_are_no_candidates(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world, caller(world) as client:
        route = await client.candidates(QUERY, environment="staging")

    assert (route["candidates"], route["throttled"]) == ([], True)


@pytest.mark.parametrize("capability", [QUERY, CANCEL])
async def test_without_a_gateway_the_agent_answers_in_the_same_shape(store_url, tmp_path, capability):
    async with open_direct(store_url, tmp_path) as world, caller(world) as client:
        usual = await client.chat("hello", capability=capability, user_id="u1")
        await client.candidates(capability)
        await world.kill_gateway()

        answer = await client.chat("hello", capability=capability, user_id="u2")

    assert usual.get("direct") is None
    assert (answer["status"], answer["answer"], answer["direct"]) == ("completed", "done 2 for u2", True)
    assert answer.keys() - usual.keys() == {"direct"}
    assert answer["parts"][0].keys() == usual["parts"][0].keys()
    assert (answer["parts"][0]["agent_id"], answer["parts"][0]["attempts"]) == ("shop", 1)


async def test_no_capability_no_fallback(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world, caller(world) as client:
        await client.candidates(QUERY)
        await world.kill_gateway()

        with pytest.raises(UnavailableError):
            await client.chat("where is my order")

    assert world.shop.runs == []


async def test_what_was_accepted_after_all_is_answered_from_the_inbox(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world, caller(world) as client:
        await client.candidates(QUERY)
        accepted = await client.chat("hello", capability=QUERY, idempotency_key="mine")
        await world.kill_gateway()

        again = await client.chat("hello", capability=QUERY, idempotency_key="mine")

    assert (again["answer"], again["direct"]) == (accepted["answer"], True)
    assert world.shop.runs == ["hello"]


async def test_what_may_not_run_twice_is_not_done_under_a_key_that_may_be_in_use(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world, caller(world) as client:
        await client.candidates(CANCEL)
        await world.kill_gateway()

        with pytest.raises(UnavailableError):
            await client.chat("hello", capability=CANCEL, idempotency_key="mine")

    assert world.shop.runs == []


@pytest.mark.parametrize(("capability", "runs"), [(QUERY, ["hello"]), (CANCEL, [])])
async def test_where_nobody_knows_whether_it_was_accepted_only_what_may_run_again_does(
    store_url, tmp_path, capability, runs
):
    async with open_direct(store_url, tmp_path) as world, dropping() as unclear:
        async with caller(world) as knowing:
            route = await knowing.candidates(capability)
        async with caller(world, unclear) as client:
            remember(client, capability, route)
            try:
                answer = await client.chat("hello", capability=capability)
            except UnavailableError:
                answer = None

    assert world.shop.runs == runs
    assert (answer is not None) == bool(runs)


def remember(client: Client, capability: str, route: dict[str, Any]) -> None:
    assert client._direct is not None
    client._direct.learn(Wish(capability=capability), route)


async def test_without_a_grant_there_is_no_ticket(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world, caller(world, who="bob") as client:
        with pytest.raises(CallError) as refused:
            await client.candidates(QUERY)
        with pytest.raises(CallError) as unknown:
            await client.candidates("no.such")

    assert refused.value.error_code == "not_found"
    assert refused.value.problem == unknown.value.problem


async def test_a_grant_that_is_revoked_brings_no_new_ticket_and_ends_what_was_remembered(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world, caller(world) as client:
        await client.candidates(CANCEL)
        await world.set_grants("alice", QUERY)

        with pytest.raises(CallError) as refused:
            await client.candidates(CANCEL)
        await world.kill_gateway()
        with pytest.raises(UnavailableError):
            await client.chat("hello", capability=CANCEL)

    assert (refused.value.error_code, world.shop.runs) == ("not_found", [])


async def test_an_agent_that_does_not_allow_it_gets_neither_tickets_nor_keys(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world, caller(world) as client:
        await world.register(direct_fallback=False)
        (found,) = (await client.candidates(QUERY))["candidates"]
        with pytest.raises(CallError) as refused:
            await world.learn_keys()
        await world.kill_gateway()
        with pytest.raises(UnavailableError):
            await client.chat("hello", capability=QUERY)

    assert (found["direct"], refused.value.error_code, world.shop.runs) == (None, "not_found", [])


async def test_a_call_without_ticket_and_credential_is_refused(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world:
        bare = await post(world, frame())
        wrong = await post(world, frame(), Authorization="Bearer someone-else-made-this-up")
        sent = await post(world, frame(), Authorization=f"Bearer {CREDENTIAL}")

    assert (bare.status_code, wrong.status_code, sent.status_code) == (401, 401, 200)
    assert world.shop.runs == ["hello"]


async def test_forged_and_foreign_tickets_are_refused(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world:
        ticket = await ticket_of(world)
        forged = f"{ticket[:-1]}{'0' if ticket[-1] != '0' else '1'}"
        replies = [
            await post(world, frame(), **{"Direct-Ticket": forged}),
            await post(world, frame(), **{"Direct-Ticket": "7." + "0" * 64}),
            await post(world, frame(), **{"Direct-Ticket": "nonsense"}),
            await post(world, frame(of="bob"), **{"Direct-Ticket": ticket}),
            await post(world, frame(CANCEL), **{"Direct-Ticket": ticket}),
            await post(world, frame(agent_id="other"), **{"Direct-Ticket": ticket}),
        ]
        good = await post(world, frame(), **{"Direct-Ticket": ticket})

    assert [reply.status_code for reply in replies] == [403] * len(replies)
    assert (good.status_code, good.json()["status"]) == (200, "success")
    assert world.shop.runs == ["hello"]


async def test_a_ticket_does_not_open_the_results_of_other_callers(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world:
        ticket = await ticket_of(world)
        theirs = callers_key(CallerId("bob"), Capability(QUERY), "k1", "hello")
        for key in (theirs, f"{new_id()}:0"):
            reply = await post(world, frame(idempotency_key=key), **{"Direct-Ticket": ticket})
            assert reply.status_code == 403

    assert world.shop.runs == []


async def test_an_agent_out_of_touch_admits_nobody_after_a_time(store_url, tmp_path):
    async with open_direct(store_url, tmp_path, keep_s=600) as world:
        ticket = await ticket_of(world)
        world.clock.ahead_s += 599
        just_in_time = await post(world, frame(), **{"Direct-Ticket": ticket})
        world.clock.ahead_s += 2
        too_late = await post(world, frame(), **{"Direct-Ticket": ticket})
        await world.learn_keys()
        in_touch = await post(world, frame(), **{"Direct-Ticket": ticket})

    assert [r.status_code for r in (just_in_time, too_late, in_touch)] == [200, 403, 200]


async def test_a_repeated_call_is_answered_from_the_inbox(store_url, tmp_path):
    async with open_direct(store_url, tmp_path) as world:
        ticket = await ticket_of(world, CANCEL)
        first = await post(world, frame(CANCEL), **{"Direct-Ticket": ticket})
        again = await post(world, frame(CANCEL, attempt=2, token="u" * 32), **{"Direct-Ticket": ticket})

    assert first.json()["result"] == again.json()["result"]
    assert (again.json()["attempt"], again.json()["token"]) == (2, "u" * 32)
    assert world.shop.runs == ["hello"]


async def test_a_ticket_of_one_replica_fits_the_keys_of_another(upgraded_postgres_url, tmp_path):
    async with open_direct(upgraded_postgres_url, tmp_path) as world, caller(world) as client:
        async with gateway_of(world.running.settings) as (_, url):
            await world.learn_keys(url)
        await client.candidates(QUERY)
        await world.kill_gateway()

        answer = await client.chat("hello", capability=QUERY)

    assert (answer["status"], answer["direct"]) == ("completed", True)
