"""What replicas go by where they, a person, another version or a change of the encoder come between."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from sqlalchemy import update

from dispatcher.assembly.calibrating import Calibrating
from dispatcher.errors import ConfigurationError, RequestError
from dispatcher.registry.agent import Agent
from dispatcher.registry.repository import RegistrySnapshot
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.calibration_book import CalibrationBook
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.stored_calibration import (
    DISPATCHER,
    InUse,
    Made,
    State,
    Stored,
    Unreadable,
    Wanted,
)
from dispatcher.store.calibrations import SqlCalibrations
from dispatcher.store.engine import Database
from dispatcher.store.tables import calibrations
from tests.conformance.store.replicas import GOOD, LABELLED, MORE, VAGUE, VAGUER
from tests.routing.conftest import build_agent, build_capability


async def test_replicas_that_calibrate_one_registry_apart_go_by_the_first_one_stored(one, other):
    await one.sync([GOOD], 1)
    apart = replace(one.used, floor=one.used.floor + 0.05)
    recorded = Recorded(calibration=apart, contrast=contrast_digest())
    await one.store.supersede(1, Made(recorded=recorded, made_by=DISPATCHER))

    for replica in (one, other, one):
        await replica.sync([GOOD], 1)

    assert await one.states() == [(1, "self", "retired"), (2, "self", "in_force")]
    assert one.used == other.used == apart


async def test_one_that_is_held_while_a_newer_one_is_made_stays(one):
    await one.sync([GOOD], 1)
    first = one.used
    await one.change(1, State.IN_FORCE)

    await one.sync([GOOD, MORE], 2)

    assert await one.states() == [(1, "self", "in_force")]
    assert one.used.floor == first.floor


async def test_going_back_by_way_of_the_shadow_lasts(one):
    await one.sync([GOOD], 1)
    first = one.used
    await one.sync([GOOD, MORE], 2)

    await one.change(1, State.SHADOW)
    await one.change(1, State.IN_FORCE)
    for _ in range(2):
        await one.book.look()

    assert await one.states() == [(1, "self", "in_force"), (2, "self", "retired")]
    assert one.used.floor == first.floor


async def test_after_a_change_of_the_encoder_its_own_calibrations_count(one, encoder):
    class Renamed:
        encoder_id, dimensions, encode = "renamed", encoder.dimensions, encoder.encode

    await one.sync([GOOD], 1)
    await one.change(await one.propose(LABELLED), State.IN_FORCE)
    await one.book.look()
    await one.change(1, State.RETIRED)

    await one.router.change_encoder(Renamed())
    await one.book.look()

    assert one.used.encoder_id == "renamed"
    assert await one.states() == [
        (1, "self", "retired"),
        (2, "labelled", "in_force"),
        (3, "self", "in_force"),
    ]


async def test_a_new_encoder_serves_with_what_is_in_force_of_it_from_the_first_moment(one, encoder):
    class Renamed:
        encoder_id, dimensions, encode = "renamed", encoder.dimensions, encoder.encode

    await one.sync([GOOD], 1)
    there = InUse(encoder_id="renamed", contrast=contrast_digest())
    for floor, state in ((0.4, State.IN_FORCE), (0.6, State.SHADOW)):
        number = await one.propose(replace(LABELLED, encoder_id="renamed", floor=floor))
        await one.store.change(Wanted(number=number, state=state, by="admin"), there)

    await one.router.change_encoder(Renamed(), one.book.introduce)

    assert (one.used.kind, one.used.floor) == ("labelled 2", 0.4)
    (ranking,) = await one.router.rank(["where is my parcel"])
    assert ranking.shadow.number == 3
    await one.book.look()
    assert (one.used.kind, one.used.floor) == ("labelled 2", 0.4)


class ChangingStore(SqlCalibrations):
    """The encoder is changed while the first one is read."""

    def __init__(self, database: Database, change: Callable[[], Awaitable[object]]) -> None:
        super().__init__(database)
        self._change: Callable[[], Awaitable[object]] | None = change

    async def read(self, number: int) -> Stored | None:
        change, self._change = self._change, None
        if change is not None:
            await change()
        return await super().read(number)


async def test_what_was_read_for_the_encoder_before_is_not_followed_by_the_new_one(
    one, encoder, database: Database
):
    class Renamed:
        encoder_id, dimensions, encode = "renamed", encoder.dimensions, encoder.encode

    await one.router.sync([GOOD], 1)
    await one.change(await one.propose(LABELLED), State.IN_FORCE)
    store = ChangingStore(database, lambda: one.router.change_encoder(Renamed()))
    book = CalibrationBook(store, one.router, contrast=contrast_digest())

    await book.look()

    assert (one.used.encoder_id, one.used.kind in {"self", "reference"}) == ("renamed", True)
    assert await one.states() == [(1, "labelled", "in_force"), (2, "self", "in_force")]


def _snapshot(version: int, *agents: Agent) -> RegistrySnapshot:
    return RegistrySnapshot(version=version, agents=agents, instances=(), contracts=())


async def test_an_unreadable_proposal_keeps_no_newer_one_from_being_proposed(one, database: Database):
    await one.sync([VAGUE], 1)
    await one.sync([VAGUE, VAGUER], 2)
    async with database.writing() as connection:
        later = update(calibrations).where(calibrations.c.number == 2).values(document={"form": 2})
        await connection.execute(later)
    calibrating = Calibrating(router=one.router, store=one.store, book=one.book)
    vaguest = build_agent(
        "x", build_capability("vaguest", "the who", "what do I do", "who is it", "why is it")
    )

    await calibrating.follow(_snapshot(3, VAGUE, VAGUER, vaguest))

    newest, unreadable, in_force = await calibrating.list()
    assert [one.state.value for one in (newest, unreadable, in_force)] == ["proposed", "proposed", "in_force"]
    assert isinstance(newest, Stored)
    assert isinstance(unreadable, Unreadable)
    assert newest.recorded.calibration.registry_version == 3


class BrokenBook(CalibrationBook):
    """Fails at every look."""

    async def look(self) -> None:
        raise ConfigurationError("broken")


async def test_whatever_the_book_fails_at_the_registry_is_followed(one, caplog):
    book = BrokenBook(one.store, one.router, contrast=contrast_digest())
    calibrating = Calibrating(router=one.router, store=one.store, book=book)

    await calibrating.follow(_snapshot(1, GOOD))

    (ranking,) = await one.router.rank(["where is my parcel"])
    assert ranking.registry_version == 1
    (told,) = [record for record in caplog.records if record.msg == "calibration.not_followed"]
    assert told.__dict__["why"] == "broken"


async def test_a_change_that_is_stored_is_answered_whatever_the_book_fails_at(one, caplog):
    number = await one.propose(LABELLED)
    book = BrokenBook(one.store, one.router, contrast=contrast_digest())
    calibrating = Calibrating(router=one.router, store=one.store, book=book)

    changed = await calibrating.change(number, State.IN_FORCE, "root")

    assert (changed.state, changed.changed_by) == (State.IN_FORCE, "root")
    assert [record.msg for record in caplog.records] == ["calibration.not_followed"]


async def test_what_can_not_be_read_is_said_to_be_so(one, database: Database):
    number = await one.propose(LABELLED)
    async with database.writing() as connection:
        await connection.execute(update(calibrations).values(document={"form": 2}))
    calibrating = Calibrating(router=one.router, store=one.store, book=one.book)

    with pytest.raises(RequestError) as refused:
        await calibrating.show(number)
    retired = await calibrating.change(number, State.RETIRED, "root")

    assert refused.value.error_code == "not_readable"
    assert isinstance(retired, Unreadable)
