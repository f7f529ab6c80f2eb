"""Dead letters as operators meet them: each with its cause, and done again without being done twice."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dispatcher.amqp.alongside import alongside
from dispatcher.dispatch.repeats import INBOXES_REMEMBER_MS
from dispatcher.identifiers import AgentId
from dispatcher.protocol.link import Settlement
from dispatcher.sdk.sqlite_inbox import SqliteInbox
from tests.conformance.workshop import DEADLINE_S, MEND, POLISH, LossyLink, Mender, Workshop, open_workshop

CLOCK = AgentId("clock")


@pytest.fixture
async def shop(store_url: str, tmp_path: Path) -> AsyncIterator[Workshop]:
    async with open_workshop(store_url, tmp_path) as shop:
        yield shop


@pytest.fixture
async def careful(shop: Workshop, tmp_path: Path) -> AsyncIterator[Mender]:
    """A broken mender that must not do a thing twice, at work."""
    mender = Mender("mender", idempotent=False)
    mender.is_broken = True
    inbox = await SqliteInbox.open(tmp_path / "inbox.db")
    async with shop.employing(mender, inbox=inbox):
        yield mender
    await inbox.aclose()


async def settle_each(shop: Workshop, settlement: Settlement) -> None:
    """An instance of the agent `clock` that never does anything with what it gets."""
    async with shop.link.deliveries(CLOCK, 1) as deliveries:
        async for delivery in deliveries:
            await delivery.settle(settlement)


async def asked_of_clock(shop: Workshop, settlement: Settlement) -> str:
    """The error code of a task that the agent `clock` settles so, without any answer."""
    capability = {"name": MEND, "descriptions": ["mends things"], "idempotent": True}
    body = {
        "agent_id": CLOCK,
        "instance_name": "one",
        "instance_id": "one",
        "inbox": "memory",
        "declaration": {"channel": "in-process", "max_load": 1, "capabilities": [capability]},
    }
    registered = await shop.whole.agent.post("/v1/agents", json=body)
    assert registered.status_code == 201, registered.text
    async with asyncio.timeout(DEADLINE_S), alongside(settle_each(shop, settlement)):
        answer = (await shop.ask()).json()
    return str(answer["parts"][0]["error"]["code"])


async def test_what_its_agent_failed_at_is_done_again_under_its_key_for_its_caller(shop: Workshop) -> None:
    mender = Mender("mender")
    mender.is_broken = True
    async with shop.employing(mender):
        failed = (await shop.ask()).json()
        letter = await shop.letter("agent_error")
        mender.is_broken = False

        accepted = await shop.retry(letter)
        answer = await shop.ended(accepted)

    assert (letter["request_id"], letter["error_code"]) == (failed["request_id"], "no_glue")
    assert (answer["status"], answer["answer"]) == ("completed", "mended by mender")
    assert mender.keys == [f"{failed['request_id']}:0"] * 2
    (known,) = await shop.letters()
    assert known["retried_as"] == answer["request_id"]
    assert await shop.letters("?retried=false") == []
    assert (await shop.whole.bob.get(f"/v1/requests/{answer['request_id']}")).status_code == 404


async def test_what_fails_again_is_dead_again_and_the_old_letter_is_done_with(shop: Workshop) -> None:
    mender = Mender("mender")
    mender.is_broken = True
    async with shop.employing(mender):
        await shop.ask()
        first = await shop.letter("agent_error")
        again = await shop.ended(await shop.retry(first))
        second, _ = await shop.letters()

        refused = await shop.retry(first)
        mender.is_broken = False
        answer = await shop.ended(await shop.retry(second))

    assert (second["request_id"], second["retries"]) == (again["request_id"], 1)
    assert (refused.status_code, refused.json()["code"]) == (409, "already_retried")
    assert answer["status"] == "completed"
    assert len(set(mender.keys)) == 1


async def test_a_retry_whose_answer_got_lost_is_posted_again_and_told_the_same(shop: Workshop) -> None:
    mender = Mender("mender")
    mender.is_broken = True
    async with shop.employing(mender):
        await shop.ask()
        letter = await shop.letter("agent_error")

        at_once = await asyncio.gather(*(shop.retry(letter, key="mine") for _ in range(4)))
        again = await shop.ended(at_once[0])
        second, _ = await shop.letters()
        await shop.ended(await shop.retry(second))
        once_more = await shop.retry(letter, key="mine")
        others = [
            await shop.retry(letter, key="another"),
            await shop.retry(letter, "mender", key="mine"),
            await shop.retry(letter),
        ]

    assert {reply.json()["request_id"] for reply in (*at_once, once_more)} == {again["request_id"]}
    assert [reply.json()["code"] for reply in others] == ["already_retried"] * 3
    assert len(mender.keys) == 3


async def test_of_many_operators_at_once_one_has_it_done_again(shop: Workshop) -> None:
    mender = Mender("mender")
    mender.is_broken = True
    async with shop.employing(mender):
        await shop.ask()
        letter = await shop.letter("agent_error")

        replies = await asyncio.gather(*(shop.retry(letter) for _ in range(8)))

    assert sorted(reply.status_code for reply in replies) == [202] + [409] * 7


async def test_what_had_succeeded_after_all_is_told_and_not_done_twice(shop: Workshop) -> None:
    mender, link = Mender("mender", limit_s=1.0), LossyLink(shop.link)
    async with shop.employing(mender, link=link):
        await shop.ask()
        letter = await shop.letter("exhausted")
        link.loses = False
        async with shop.employing(Mender("a-better-one")):
            answer = await shop.ended(await shop.retry(letter))

    assert (letter["error_code"], answer["answer"]) == ("timeout", "mended by mender")
    assert len(mender.keys) == 1


async def test_what_must_not_run_twice_stays_with_its_agent_and_is_told(
    shop: Workshop, careful: Mender
) -> None:
    other = Mender("other")
    await shop.ask()
    letter = await shop.letter("agent_error")
    careful.is_broken = False
    async with shop.employing(other):
        elsewhere = await shop.retry(letter, "other")
        answer = await shop.ended(await shop.retry(letter))

    assert (elsewhere.status_code, elsewhere.json()["code"]) == (409, "may_have_run")
    assert answer["parts"][0]["error"]["code"] == "no_glue"
    assert (len(careful.keys), other.keys) == (1, [])


async def test_what_must_not_run_twice_is_not_asked_for_once_its_agent_may_have_forgotten_it(
    shop: Workshop, careful: Mender
) -> None:
    await shop.ask()
    first = await shop.letter("agent_error")
    await shop.ended(await shop.retry(first))
    await shop.let_pass(INBOXES_REMEMBER_MS)
    second, _ = await shop.letters()

    refused = await shop.retry(second)

    assert (refused.status_code, refused.json()["code"]) == (409, "may_have_run")
    assert len(careful.keys) == 1


async def test_another_agent_gets_it_where_an_operator_says_so(shop: Workshop) -> None:
    mender, other = Mender("mender"), Mender("other")
    mender.is_broken = True
    async with shop.employing(mender):
        await shop.ask()
        letter = await shop.letter("agent_error")
        nowhere = await shop.retry(letter, "nobody")
        async with shop.employing(other):
            answer = await shop.ended(await shop.retry(letter, "other"))

    assert (nowhere.status_code, nowhere.json()["code"]) == (409, "agent_unavailable")
    assert answer["parts"][0]["agent_id"] == "other"
    assert other.keys == mender.keys


async def test_without_a_grant_nobody_is_called_and_nothing_is_done_again(shop: Workshop) -> None:
    mender = Mender("mender", places=1)
    mender.may_end.clear()
    async with shop.employing(mender):
        await shop.hand_in()
        await mender.began.wait()
        await shop.hand_in()
        await shop.grant()
        mender.may_end.set()
        letter = await shop.letter("unauthorised")
        refused = await shop.retry(letter)
        calls = len(mender.keys)
        await shop.grant(MEND)
        answer = await shop.ended(await shop.retry(letter))

    assert (refused.status_code, refused.json()["code"]) == (409, "caller_not_granted")
    assert (calls, answer["status"]) == (1, "completed")


async def test_what_never_got_its_turn_has_expired(shop: Workshop) -> None:
    mender = Mender("mender", places=1)
    mender.may_end.clear()
    async with shop.employing(mender):
        await shop.hand_in()
        await mender.began.wait()
        late = await shop.ask(POLISH)
        expired = await shop.letters("?cause=expired")
        mender.may_end.set()

    assert [letter["request_id"] for letter in expired] == [late.json()["request_id"]]
    assert (expired[0]["error_code"], expired[0]["status"]) == ("no_capacity", "unavailable")


async def test_a_frame_that_nobody_can_read_is_poison_and_belongs_to_nothing(shop: Workshop) -> None:
    await shop.link.publish_result(b"junk")

    letter = await shop.letter("poison")
    shown = (await shop.whole.admin.get(f"/v1/dead/{letter['dead_id']}")).json()
    refused = await shop.retry(letter)

    assert (shown["source"], shown["body"], shown["request_id"]) == ("results", "junk", None)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_retryable")


@pytest.mark.parametrize(
    ("settlement", "code"), [(Settlement.REQUEUE, "delivery_limit"), (Settlement.DEAD, "rejected")]
)
async def test_what_kills_or_repels_whoever_gets_it_is_poison_and_ends_at_once(
    shop: Workshop, settlement: Settlement, code: str
) -> None:
    assert await asked_of_clock(shop, settlement) == code

    letter = await shop.letter("poison")

    assert (letter["agent_id"], letter["error_code"]) == (CLOCK, code)


async def test_dead_letters_are_for_administrators_alone(shop: Workshop) -> None:
    replies = [await client.get("/v1/dead") for client in (shop.whole.alice, shop.whole.agent)]

    assert [reply.status_code for reply in replies] == [403, 403]
