"""Requests as streams of events, over real HTTP, on every database."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.assembly.storage import upgrade_storage
from dispatcher.protocol.frames import ResultStatus
from dispatcher.settings import Settings, load_settings
from tests.conformance.stream_world import (
    Gateway,
    SlowReader,
    Storyteller,
    open_gateway,
    open_storyteller,
)

HIGH_WATER_LIMIT = 65_536
"""Of a connection's buffer: only beyond it a server waits for its client."""
PIECES = ["Once ", "upon ", "a time."]


def stream_settings(store_url: str, folder: Path, **server: Any) -> Settings:
    """One replica without keys."""
    return load_settings(
        data_dir=folder,
        store={"url": store_url},
        encoder={"name": "hashing"},
        auth={"development": True},
        server=server,
        delivery={"look_every_s": 0.05, "delay_min_ms": 1, "delay_max_ms": 5},
    )


class StreamBehaviour:
    """Subclassed once per database with a `store_url` fixture."""

    @pytest.fixture
    async def gateway(self, store_url: str, tmp_path: Path) -> AsyncIterator[Gateway]:
        settings = stream_settings(store_url, tmp_path)
        await upgrade_storage(settings)
        async with open_gateway(settings) as gateway:
            yield gateway

    @pytest.fixture
    async def agent(self, gateway: Gateway) -> AsyncIterator[Storyteller]:
        assert gateway.running.link is not None
        async with open_storyteller(gateway.running.link) as agent:
            yield agent

    async def test_pieces_are_read_before_there_is_a_result(
        self, gateway: Gateway, agent: Storyteller
    ) -> None:
        async with gateway.posted() as reader:
            task = await agent.task()
            pieces = []
            for sequence, text in enumerate(PIECES):
                await agent.say(task, sequence, text)
                pieces.append((await reader.until("partial"))[-1].data)
            await agent.end(task, "".join(PIECES))
            rest = await reader.rest()

        request = (await gateway.client.get(f"/v1/requests/{task.request_id}")).json()
        assert [piece["result"]["text"] for piece in pieces] == PIECES
        assert [piece["sequence"] for piece in pieces] == [0, 1, 2]
        assert [told.event for told in rest] == ["result", "answer"]
        assert rest[0].data == {"position": 0, **request["parts"][0]}
        assert rest[1].data == request

    async def test_a_stream_tells_everything_in_order(self, gateway: Gateway, agent: Storyteller) -> None:
        async with gateway.posted() as reader:
            task = await agent.task()
            await agent.say(task, 0, "All of it.")
            await agent.end(task, "All of it.")
            told = await reader.rest()

        kinds = ["accepted", "plan", "decision", "delivery", "partial", "result", "answer"]
        assert [event.event for event in told] == kinds
        assert len({event.id for event in told}) == len(told)
        assert told[0].data == {"request_id": task.request_id, "status": "open"}
        assert told[1].data["intents"][0]["capability"] == "story.tell"
        assert told[2].data["agent_id"] == "storyteller"
        assert told[3].data == {"position": 0, "attempt": 1, "agent_id": "storyteller"}
        assert reader.response.headers["Cache-Control"] == "no-cache"
        assert reader.response.headers["X-Accel-Buffering"] == "no"
        assert reader.response.headers["Location"] == f"/v1/requests/{task.request_id}"

    async def test_progress_is_told_and_changes_nothing_for_who_resumes(
        self, gateway: Gateway, agent: Storyteller
    ) -> None:
        async with gateway.posted() as reader:
            task = await agent.task()
            delivery = (await reader.until("delivery"))[-1]
            await agent.advance(task, 0.25, "thinking")
            progress = (await reader.until("progress"))[-1]
        async with gateway.followed(task.request_id, progress.id) as reader:
            again = await reader.next()
            await agent.end(task, "The end.")
            rest = await reader.rest()

        assert progress.data == {"position": 0, "attempt": 1, "fraction": 0.25, "note": "thinking"}
        assert progress.id == delivery.id
        assert again == progress
        assert [told.event for told in rest] == ["result", "answer"]

    async def test_whoever_resumes_is_told_exactly_what_is_missing(
        self, gateway: Gateway, agent: Storyteller
    ) -> None:
        request_id = await gateway.begin()
        task = await agent.task()
        await agent.say(task, 0, PIECES[0])
        async with gateway.followed(request_id) as reader:
            before = await reader.until("partial")
        await agent.say(task, 2, PIECES[2])
        await agent.say(task, 1, PIECES[1])
        async with gateway.followed(request_id, before[-1].id) as reader:
            between = [await reader.next(), await reader.next()]
        await agent.end(task, "".join(PIECES))
        assert between[1] is not None
        async with gateway.followed(request_id, between[1].id) as reader:
            after = await reader.rest()
        async with gateway.followed(request_id) as reader:
            all_of_it = await reader.rest()

        assert [*before, *between, *after] == all_of_it
        texts = [told.data["result"]["text"] for told in all_of_it if told.event == "partial"]
        assert texts == PIECES

    async def test_resuming_after_every_event_tells_the_rest(
        self, gateway: Gateway, agent: Storyteller
    ) -> None:
        request_id = await gateway.begin()
        task = await agent.task()
        await agent.say(task, 0, "a")
        await agent.end(task, "", status=ResultStatus.ERROR)
        task = await agent.task()
        await agent.say(task, 0, "b")
        await agent.end(task, "b")
        async with gateway.followed(request_id) as reader:
            told = await reader.rest()

        attempts = [(e.event, e.data.get("attempt")) for e in told if e.event in {"delivery", "partial"}]
        assert attempts == [("delivery", 1), ("partial", 1), ("delivery", 2), ("partial", 2)]
        for number, event in enumerate(told[:-1], 1):
            async with gateway.followed(request_id, event.id) as reader:
                assert await reader.rest() == told[number:]
        async with gateway.followed(request_id, told[-1].id) as reader:
            assert reader.response.status_code == 204

    async def test_a_message_with_a_key_is_resumed_by_posting_it_again(
        self, gateway: Gateway, agent: Storyteller
    ) -> None:
        headers = {"Idempotency-Key": "k1"}
        async with gateway.posted(**headers) as reader:
            told = await reader.until("delivery")
        task = await agent.task()
        await agent.end(task, "The end.")
        async with gateway.posted(**headers, **{"Last-Event-ID": told[-1].id}) as reader:
            rest = await reader.rest()

        assert reader.response.headers["Idempotency-Replayed"] == "true"
        assert [event.event for event in rest] == ["result", "answer"]

    async def test_a_cancelled_request_ends_its_stream(self, gateway: Gateway, agent: Storyteller) -> None:
        async with gateway.posted() as reader:
            await reader.until("delivery")
            task = await agent.task()
            cancelled = await gateway.client.delete(f"/v1/requests/{task.request_id}")
            rest = await reader.rest()
        again = await gateway.client.delete(f"/v1/requests/{task.request_id}")

        assert cancelled.status_code == 200
        assert [(e.event, e.data["status"]) for e in rest] == [
            ("result", "cancelled"),
            ("answer", "cancelled"),
        ]
        assert rest[-1].data == cancelled.json() == again.json()

    async def test_a_reader_that_leaves_ends_its_stream_and_not_the_request(
        self, gateway: Gateway, agent: Storyteller
    ) -> None:
        async with gateway.posted() as reader:
            request_id = (await reader.until("accepted"))[0].data["request_id"]
        task = await agent.task()
        await agent.end(task, "The end.")
        ended = await gateway.running.parts.books.waiters.wait(request_id, 10)

        assert ended.request.status == "completed"
        await gateway.until_nobody_waits()

    async def test_a_replica_that_stops_ends_its_streams(self, gateway: Gateway, agent: Storyteller) -> None:
        async with gateway.posted() as reader:
            await reader.until("delivery")
            gateway.running.stop()
            rest = await reader.rest()

        assert rest == []

    async def test_without_a_place_nothing_is_accepted(self, store_url: str, tmp_path: Path) -> None:
        settings = stream_settings(store_url, tmp_path, max_waiting=1)
        await upgrade_storage(settings)
        async with open_gateway(settings) as gateway:
            assert gateway.running.link is not None
            async with open_storyteller(gateway.running.link), gateway.posted() as reader:
                request_id = (await reader.until("accepted"))[0].data["request_id"]
                async with gateway.posted() as second:
                    refusal = await second.response.aread()
                async with gateway.followed(request_id) as third:
                    pass
            open_now = await gateway.running.parts.ledger.open_attempts()

        assert (second.response.status_code, third.response.status_code) == (503, 503)
        assert b"too_many_waiting" in refusal
        assert sum(open_now.values()) == 1

    async def test_a_reader_that_takes_nothing_is_cut_off_and_resumes(
        self, store_url: str, tmp_path: Path
    ) -> None:
        settings = stream_settings(store_url, tmp_path, stream_stall_s=0.2)
        await upgrade_storage(settings)
        async with open_gateway(settings) as gateway:
            assert gateway.running.link is not None
            async with open_storyteller(gateway.running.link) as agent:
                request_id = await gateway.begin()
                task = await agent.task()
                slow = SlowReader(gateway.port, f"/v1/requests/{request_id}/events")
                for sequence in range(40):
                    await agent.say(task, sequence, "x" * 8_192)
                await gateway.until_nobody_waits()
                taken = await asyncio.to_thread(slow.rest)
                await agent.end(task, "The end.")
                async with gateway.followed(request_id) as reader:
                    all_of_it = [told.id for told in await reader.rest()]
                async with gateway.followed(request_id, after=taken[-1]) as reader:
                    missing = [told.id for told in await reader.rest()]

        assert 0 < len(slow.received) < HIGH_WATER_LIMIT, "what was buffered for it is dropped"
        assert [*taken, *missing] == all_of_it


class TestStreamsOnSqlite(StreamBehaviour):
    @pytest.fixture
    def store_url(self, upgraded_sqlite_url: str) -> str:
        return upgraded_sqlite_url


class TestStreamsOnPostgresql(StreamBehaviour):
    @pytest.fixture
    def store_url(self, upgraded_postgres_url: str) -> str:
        return upgraded_postgres_url
