"""Replicas with one database: what one of them learns or an administrator changes, all of them go by."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from dispatcher import records
from dispatcher.assembly.running import open_dispatcher
from dispatcher.identifiers import AgentId
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.stored_calibration import (
    DISPATCHER,
    Made,
    Mark,
    State,
    Wanted,
)
from dispatcher.settings import load_settings
from dispatcher.store.engine import Database
from dispatcher.store.tables import calibrations
from tests.conformance.store.replicas import ENCODER, GOOD, LABELLED, MORE, VAGUE, VAGUER


async def test_a_registrys_own_calibration_is_stored_once_and_a_later_replica_takes_it(one, other):
    await one.sync([GOOD], 1)
    await other.sync([GOOD], 1)
    await one.book.look()

    assert await one.states() == [(1, "self", "in_force")]
    assert one.used == other.used
    assert one.used.kind in {"self", "reference"}


async def test_replicas_that_follow_the_registry_at_once_store_one(one, other):
    for version, agents in enumerate(([GOOD], [GOOD, MORE]), start=1):
        await asyncio.gather(one.sync(agents, version), other.sync(agents, version))
        await one.book.look()
        await other.book.look()

    assert await one.states() == [(1, "self", "retired"), (2, "self", "in_force")]
    assert one.used == other.used


async def test_a_replica_that_is_behind_does_not_turn_the_clock_back(one, other):
    await one.sync([GOOD], 1)
    await one.sync([GOOD, MORE], 3)

    await other.sync([GOOD], 2)

    assert await one.states() == [(1, "self", "retired"), (2, "self", "in_force")]
    assert other.used.floor == one.used.floor


async def test_an_empty_registry_stores_nothing(one):
    await one.sync([], 1)

    assert await one.states() == []


async def test_one_that_waits_is_proposed_once_and_approved_for_all(one, other):
    await one.sync([VAGUE], 1)
    first = one.used
    for replica in (one, other):
        await replica.sync([VAGUE, VAGUER], 2)
        await replica.book.look()
    assert await one.states() == [(1, "self", "in_force"), (2, "self", "proposed")]
    assert (one.used.floor, other.used.floor) == (first.floor, first.floor)

    await one.change(2, State.IN_FORCE)
    for replica in (one, other):
        await replica.book.look()

    assert await one.states() == [(1, "self", "retired"), (2, "self", "in_force")]
    assert one.used == other.used
    assert one.used.registry_version == 2
    assert one.router.fitted is not None
    assert one.router.fitted.pending is None
    await one.sync([GOOD], 3)
    assert (await one.states())[-1] == (3, "self", "in_force")


async def test_one_that_was_turned_down_stays_so(one, other):
    await one.sync([VAGUE], 1)
    await one.sync([VAGUE, VAGUER], 2)

    await one.change(2, State.RETIRED)
    await one.book.look()
    await other.sync([VAGUE, VAGUER], 2)

    assert await one.states() == [(1, "self", "in_force"), (2, "self", "retired")]


async def test_a_labelled_one_is_gone_by_until_it_is_retired(one, other):
    await one.sync([GOOD], 1)
    await other.sync([GOOD], 1)
    number = await one.propose(LABELLED)
    await one.change(number, State.IN_FORCE)

    await other.book.look()
    await other.sync([GOOD, MORE], 2)

    assert (other.used.kind, other.used.floor) == ("labelled 2", 0.05)
    (ranking,) = await other.router.rank(["refund me"])
    assert (ranking.calibration, ranking.scope_floor, ranking.in_scope) == ("labelled 2", 0.9, False)
    assert await one.states() == [(1, "self", "retired"), (2, "labelled", "in_force")]
    await one.change(number, State.RETIRED)
    await other.book.look()
    assert other.used.kind in {"self", "reference"}
    assert (await one.states())[-1] == (3, "self", "in_force")


async def test_an_earlier_one_that_is_put_in_force_again_stays(one, other):
    await one.sync([GOOD], 1)
    first = one.used
    await one.sync([GOOD, MORE], 2)
    await other.sync([GOOD, MORE], 2)

    await one.change(1, State.IN_FORCE)
    for replica in (one, other):
        await replica.book.look()
        await replica.sync([GOOD, MORE, VAGUE], 3)

    assert await one.states() == [(1, "self", "in_force"), (2, "self", "retired")]
    assert (one.used.floor, one.used.curve) == (first.floor, first.curve)
    assert one.used == other.used


async def test_one_that_no_version_here_can_use_is_not_used(one):
    await one.propose(LABELLED, contrast="older")
    await one.store.change(
        Wanted(number=1, state=State.IN_FORCE, by="admin"), replace(one.book.in_use, contrast="older")
    )

    await one.sync([GOOD], 1)

    assert one.used.kind in {"self", "reference"}
    assert await one.states() == [(1, "labelled", "in_force")]


async def test_a_self_calibration_of_an_older_version_is_replaced(one):
    made = Recorded(calibration=replace(LABELLED, kind="self", registry_version=1), contrast="older")
    await one.store.supersede(None, Made(recorded=made, made_by=DISPATCHER))

    await one.sync([GOOD], 1)

    assert await one.states() == [(1, "self", "retired"), (2, "self", "in_force")]
    assert one.used.floor != LABELLED.floor


async def test_one_of_a_later_version_is_left_alone_and_stops_nobody(one, database: Database):
    await one.change(await one.propose(LABELLED), State.IN_FORCE)
    async with database.writing() as connection:
        await connection.execute(update(calibrations).values(document={"form": 2}))

    await one.sync([GOOD], 1)

    assert one.used.kind in {"self", "reference"}
    (mark,) = await one.store.marks(ENCODER)
    assert mark == Mark(1, State.IN_FORCE, held=True)


async def test_one_in_shadow_is_asked_and_nothing_follows_from_it(one, other):
    await one.sync([GOOD], 1)
    await other.sync([GOOD], 1)
    number = await one.propose(replace(LABELLED, floor=2.0))
    (before,) = await other.router.rank(["where is my parcel"])

    await one.change(number, State.SHADOW)
    await other.book.look()

    (ranking,) = await other.router.rank(["where is my parcel"])
    assert ranking.shadow is not None
    assert (ranking.shadow.number, ranking.shadow.in_scope, ranking.shadow.scope_floor) == (2, False, 2.0)
    assert records.replace(ranking, shadow=None) == before
    await one.change(number, State.RETIRED)
    await other.book.look()
    assert (await other.router.rank(["where is my parcel"])) == (before,)


class Followed(logging.Handler):
    """An event for each time that a replica took up what is in force."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: asyncio.Queue[int | None] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == "calibration.followed":
            self.numbers.put_nowait(record.__dict__["in_force"])

    async def wait_for(self, number: int) -> None:
        async with asyncio.timeout(20):
            while await self.numbers.get() != number:
                pass


@pytest.fixture
def followed(caplog: pytest.LogCaptureFixture) -> Iterator[Followed]:
    caplog.set_level(logging.INFO, "dispatcher.routing.calibration_book")
    handler = Followed()
    logger = logging.getLogger("dispatcher.routing.calibration_book")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


async def test_a_running_dispatcher_follows_what_another_ones_administrator_changes(
    ledger_url: str, tmp_path: Path, followed: Followed
):
    settings = load_settings(
        data_dir=tmp_path,
        auth={"development": True},
        encoder={"name": "hashing"},
        broker={"url": ""},
        store={"url": ledger_url},
    )
    async with open_dispatcher(settings) as one, open_dispatcher(settings) as other:
        recorded = Recorded(calibration=LABELLED, contrast=contrast_digest())
        number = await one.parts.calibrations.store.propose(Made(recorded=recorded, made_by="admin"))

        await one.parts.calibrations.change(number, State.IN_FORCE, "admin")
        assert one.parts.router.calibration is not None
        assert one.parts.router.calibration.kind == f"labelled {number}"
        await followed.wait_for(number)
        await followed.wait_for(number)

        assert other.parts.router.calibration == one.parts.router.calibration


async def test_a_look_that_finds_nothing_new_leaves_the_router_alone(one):
    await one.sync([GOOD], 1)
    await one.book.look()
    (ranking,) = await one.router.rank(["where is my parcel"])

    await one.book.look()

    assert (await one.router.rank(["where is my parcel"]))[0] is ranking
    assert AgentId("g") in ranking.capabilities[0].agent_cosines
