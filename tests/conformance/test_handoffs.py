"""How many parts wait for people, how they are listed, and who publishes them, on either database."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from dispatcher.dispatch.admission import Admission, AdmissionBounds, Backlog
from dispatcher.dispatch.lifecycle.request import ChatMessage
from dispatcher.errors import OverloadedError
from dispatcher.identifiers import AgentId, CallerId
from dispatcher.registry.access import Identity, Role
from dispatcher.store.engine import open_engine
from dispatcher.store.handoffs import SqlHandoffs
from tests.conformance.front_desk import ANYTHING, NONSENSE, only, opened
from tests.conformance.whole import Whole

UNHEARD = "01930000-0000-7000-8000-ffffffffffff.0"
"""A task that was never there."""


@pytest.fixture
async def people(store_url: str, tmp_path: Path) -> AsyncIterator[Whole]:
    async with opened(store_url, tmp_path, fallback="people") as whole:
        yield whole


async def test_a_list_goes_on_behind_what_was_seen(people: Whole) -> None:
    for number in range(3):
        await people.chat(f"{NONSENSE}{number}")
    ids = [one["task_id"] for one in (await people.admin.get("/v1/handoffs")).json()["handoffs"]]

    waiting = await pages(people, "/v1/handoffs?limit=2")
    for task_id in ids:
        await people.admin.post(f"/v1/handoffs/{task_id}/answer", json={"answer": "从前有座山"})
    answered = await pages(people, "/v1/handoffs?answered=true&limit=2")

    assert waiting == [ids[:2], ids[2:]]
    assert [len(page) for page in answered] == [2, 1]
    assert sorted(answered[0] + answered[1]) == ids
    assert (await people.admin.get(f"/v1/handoffs?after={UNHEARD}")).json()["handoffs"] == []


async def pages(people: Whole, path: str) -> list[list[str]]:
    """The ids of each page, until the answer says that there is no more."""
    found: list[list[str]] = []
    behind, more = "", True
    while more:
        page = (await people.admin.get(f"{path}{behind}")).json()
        found.append([one["task_id"] for one in page["handoffs"]])
        behind, more = f"&after={found[-1][-1]}", page["more"]
    return found


async def test_of_many_replicas_one_publishes_a_part(people: Whole) -> None:
    for number in range(4):
        await people.chat(f"{NONSENSE}{number}")
    url = people.running.settings.store_url
    async with open_engine(url) as first, open_engine(url) as second:
        mine, other = SqlHandoffs(first), SqlHandoffs(second)
        taken = await asyncio.gather(*(one.claim_unpublished(3) for one in (mine, other, mine, other)))
        ids = [one.task_id for some in taken for one in some]
        left = await other.claim_unpublished(10)

        await mine.mark_unpublishable(ids[0], "too_large")
        await mine.mark_published(ids[1])
        await mine.give_back(ids)
        again = [one.task_id for one in await other.claim_unpublished(10)]
        marked = await mine.find(ids[0])

    assert len(ids) + len(left) == 4 == len({*ids, *(one.task_id for one in left)})
    assert set(again) == set(ids[2:])
    assert marked is not None
    assert marked.publish_error == "too_large"


async def test_no_more_may_wait_for_people_than_is_allowed(store_url: str, tmp_path: Path) -> None:
    async with opened(store_url, tmp_path, fallback="people", max_handoffs=1) as whole:
        await whole.chat(NONSENSE)

        refused = await whole.alice.post("/v1/chat", json={"message": NONSENSE})
        other = await whole.chat("有什么优惠折扣")
        (waiting,) = (await whole.admin.get("/v1/handoffs")).json()["handoffs"]
        await whole.admin.post(f"/v1/handoffs/{waiting['task_id']}/answer", json={"answer": "没有"})
        await whole.running.parts.people.count()
        again = await whole.chat(NONSENSE)

    assert (refused.status_code, refused.json()["code"]) == (503, "too_many_handoffs")
    assert int(refused.headers["Retry-After"]) > 0
    assert only(other)["status"] == "completed"
    assert only(again)["status"] == "handed_off"


async def test_messages_that_come_at_once_do_not_pass_the_bound_together(
    store_url: str, tmp_path: Path
) -> None:
    async with opened(store_url, tmp_path, fallback="people", max_handoffs=2) as whole:
        bodies = [{"message": f"{NONSENSE}{number}"} for number in range(8)]

        replies = await asyncio.gather(*(whole.alice.post("/v1/chat", json=body) for body in bodies))

        await whole.running.parts.people.count()
        waiting = (await whole.admin.get("/v1/handoffs")).json()["handoffs"]
    assert sorted(reply.status_code for reply in replies) == [200] * 2 + [503] * 6
    assert len(waiting) == 2


class Flooded:
    """Implements `Backlog`: of every agent too much is wanted."""

    def __init__(self, view: Backlog) -> None:
        self.group = view.group
        self.capacity = view.capacity

    def total_open(self) -> int:
        return 0

    def open_at(self, agent_id: AgentId) -> int:
        return 1_000_000


async def test_a_full_fallback_is_refused_before_it_is_accepted(store_url: str, tmp_path: Path) -> None:
    bounds = AdmissionBounds()
    message = ChatMessage(message=NONSENSE, environment="production")
    async with opened(store_url, tmp_path, fallback="agent", fallback_capability=ANYTHING) as whole:
        door = Admission(backlog=Flooded(whole.running.parts.view), bounds=bounds)
        full = replace(whole.running.dispatcher, admission=door)
        alice, bob = (
            Identity(role=Role.CALLER, subject=name, grants=whole.running.parts.access.grants(CallerId(name)))
            for name in ("alice", "bob")
        )

        with pytest.raises(OverloadedError) as refused:
            await full.submit(message, alice)
        hinted = await full.submit(message, bob)

    assert refused.value.error_code == "backlog_full"
    assert not hinted.replayed
