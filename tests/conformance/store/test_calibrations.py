"""Calibrations by number: one in force and one in shadow of each encoder, whoever changes them when."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import update

from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.curve import Curve
from dispatcher.routing.stored_calibration import DISPATCHER, InUse, Made, Mark, State, Unreadable, Wanted
from dispatcher.store.calibrations import SUPERSEDED_KEPT, SqlCalibrations
from dispatcher.store.engine import Database, open_engine
from dispatcher.store.tables import calibrations

OWN = Calibration(
    encoder_id="e", registry_version=3, kind="self", floor=0.2, curve=Curve(slope=10.0, intercept=-2.0)
)
LABELLED = replace(
    OWN, kind="labelled", floor=0.1, floors={Capability("order.query"): 1 / 3}, registry_version=2
)
HERE = InUse(encoder_id="e", contrast="c")


def made(calibration: Calibration = LABELLED, contrast: str = "c", by: str = "command line") -> Made:
    recorded = Recorded(calibration=calibration, contrast=contrast)
    return Made(recorded=recorded, made_by=by, report={"rows": 200, "note": "人工"})


def own(version: int = 3, floor: float = 0.2) -> Made:
    return made(replace(OWN, registry_version=version, floor=floor), by=DISPATCHER)


@pytest.fixture
def store(database: Database) -> SqlCalibrations:
    return SqlCalibrations(database)


async def _change(store: SqlCalibrations, number: int, state: State):
    return await store.change(Wanted(number=number, state=state, by="admin"), HERE)


async def _states(store: SqlCalibrations) -> Sequence[tuple[int, str]]:
    return [(one.number, one.state.value) for one in reversed(await store.list(100))]


async def test_what_is_proposed_reads_back_as_it_was_made(store: SqlCalibrations):
    number = await store.propose(made())

    read = await store.read(number)

    assert read is not None
    assert (read.number, read.recorded, read.report) == (1, made().recorded, made().report)
    assert (read.state, read.held, read.made_by, read.changed_by) == (
        State.PROPOSED,
        False,
        "command line",
        "command line",
    )
    assert 0 < read.created_ms == read.changed_ms
    assert await store.marks("e") == ()
    assert await store.read(2) is None


async def test_numbers_are_given_once_and_without_gaps_wherever_they_are_asked_for(ledger_url: str):
    async with open_engine(ledger_url) as one, open_engine(ledger_url) as other:
        stores = [SqlCalibrations(one), SqlCalibrations(other)]
        numbers = await asyncio.gather(*(stores[at % 2].propose(made()) for at in range(10)))

    assert sorted(numbers) == list(range(1, 11))


async def test_an_earlier_one_is_put_in_force_again(store: SqlCalibrations):
    for _ in range(2):
        await store.propose(made())

    await _change(store, 1, State.IN_FORCE)
    await _change(store, 2, State.IN_FORCE)
    assert await _states(store) == [(1, "retired"), (2, "in_force")]
    back = await _change(store, 1, State.IN_FORCE)

    assert (back.state, back.held, back.changed_by) == (State.IN_FORCE, True, "admin")
    assert await store.marks("e") == (Mark(1, State.IN_FORCE, held=True),)
    assert await _states(store) == [(1, "in_force"), (2, "retired")]


async def test_one_is_in_shadow_and_the_one_before_it_is_proposed_again(store: SqlCalibrations):
    for _ in range(3):
        await store.propose(made())

    await _change(store, 1, State.IN_FORCE)
    await _change(store, 2, State.SHADOW)
    await _change(store, 3, State.SHADOW)

    assert await _states(store) == [(1, "in_force"), (2, "proposed"), (3, "shadow")]
    await _change(store, 3, State.IN_FORCE)
    assert await store.marks("e") == (Mark(3, State.IN_FORCE, held=True),)


async def test_the_same_again_changes_nothing(store: SqlCalibrations):
    await store.propose(made())
    first = await _change(store, 1, State.IN_FORCE)

    assert await _change(store, 1, State.IN_FORCE) == first


async def test_another_encoders_and_another_versions_are_refused_and_nothing_changes(store: SqlCalibrations):
    await store.propose(made())
    await store.propose(made(replace(LABELLED, encoder_id="other")))
    await store.propose(made(contrast="older"))
    await _change(store, 1, State.IN_FORCE)

    for number, code in ((2, "other_encoder"), (3, "other_contrast")):
        for state in (State.IN_FORCE, State.SHADOW):
            with pytest.raises(RequestError) as refused:
                await _change(store, number, state)
            assert refused.value.error_code == code

    assert await _states(store) == [(1, "in_force"), (2, "proposed"), (3, "proposed")]
    assert (await _change(store, 2, State.RETIRED)).state is State.RETIRED


async def test_each_encoder_has_one_in_force(store: SqlCalibrations):
    await store.propose(made())
    await store.propose(made(replace(LABELLED, encoder_id="other")))

    await _change(store, 1, State.IN_FORCE)
    there = InUse(encoder_id="other", contrast="c")
    await store.change(Wanted(number=2, state=State.IN_FORCE, by="admin"), there)

    assert [await store.marks(name) for name in ("e", "other")] == [
        (Mark(1, State.IN_FORCE, held=True),),
        (Mark(2, State.IN_FORCE, held=True),),
    ]


async def test_there_has_to_be_one_of_the_number(store: SqlCalibrations):
    with pytest.raises(RequestError) as refused:
        await _change(store, 1, State.RETIRED)
    assert refused.value.error_code == "not_found"


async def test_of_replicas_that_have_a_new_one_at_once_one_puts_it_in_force(ledger_url: str):
    async with open_engine(ledger_url) as one, open_engine(ledger_url) as other:
        stores = [SqlCalibrations(database) for database in (one, other, one, other)]
        first = await asyncio.gather(*(store.supersede(None, own()) for store in stores))
        second = await asyncio.gather(*(store.supersede(1, own(4)) for store in stores))
        states = await _states(stores[0])

    assert (sorted(first), sorted(second)) == ([False, False, False, True],) * 2
    assert states == [(1, "retired"), (2, "in_force")]


async def test_a_few_of_those_that_were_replaced_are_kept(store: SqlCalibrations):
    await store.propose(made())
    before: int | None = None
    for version in range(SUPERSEDED_KEPT + 5):
        assert await store.supersede(before, own(version))
        before = 2 + version

    states = dict(await _states(store))

    assert states.pop(1) == "proposed"
    assert before is not None
    assert states.pop(before) == "in_force"
    assert (set(states.values()), len(states)) == ({"retired"}, SUPERSEDED_KEPT)
    assert min(states) == before - SUPERSEDED_KEPT


async def test_of_replicas_that_would_propose_the_same_one_does(ledger_url: str):
    async with open_engine(ledger_url) as one, open_engine(ledger_url) as other:
        stores = [SqlCalibrations(database) for database in (one, other, one, other)]
        await asyncio.gather(*(store.propose_once(own()) for store in stores))
        await stores[0].propose_once(own(floor=0.2 + 1e-7))
        states = await _states(stores[0])

    assert states == [(1, "proposed")]


async def test_what_an_administrator_turned_down_is_not_proposed_again(store: SqlCalibrations):
    await store.propose_once(own())
    await _change(store, 1, State.RETIRED)

    await store.propose_once(own())

    assert await _states(store) == [(1, "retired")]


async def test_a_newer_proposal_retires_the_dispatchers_older_ones_only(store: SqlCalibrations):
    await store.propose(made())
    await store.propose_once(own(3))

    await store.propose_once(own(4))

    assert await _states(store) == [(1, "proposed"), (2, "retired"), (3, "proposed")]


async def test_of_many_proposals_as_many_are_kept_as_of_what_was_in_force(store: SqlCalibrations):
    for version in range(SUPERSEDED_KEPT + 5):
        await store.propose_once(own(version))

    states = dict(await _states(store))

    assert states.pop(SUPERSEDED_KEPT + 5) == "proposed"
    assert (set(states.values()), len(states)) == ({"retired"}, SUPERSEDED_KEPT)


async def _make_unreadable(database: Database, number: int) -> None:
    async with database.writing() as connection:
        later = {"form": 2, "registry_version": 3, "kind": "self"}
        which = calibrations.c.number == number
        await connection.execute(update(calibrations).where(which).values(document=later))


@pytest.mark.parametrize("state", [State.PROPOSED, State.RETIRED])
async def test_one_of_a_later_form_stops_no_proposal_and_is_listed(
    store: SqlCalibrations, database: Database, state: State
):
    await store.propose_once(own())
    if state is State.RETIRED:
        await _change(store, 1, state)
    await _make_unreadable(database, 1)

    await store.propose_once(own())

    newer, unreadable = await store.list(100)
    assert (newer.number, newer.state) == (2, State.PROPOSED)
    assert isinstance(unreadable, Unreadable)
    assert (unreadable.number, unreadable.encoder_id, unreadable.origin) == (1, "e", "self")
    assert (unreadable.state, unreadable.made_by, unreadable.held) == (state, DISPATCHER, False)


@pytest.mark.parametrize("state", [State.IN_FORCE, State.SHADOW])
async def test_one_of_a_later_form_can_be_retired_and_not_be_put_in_use(
    store: SqlCalibrations, database: Database, state: State
):
    await store.propose(made())
    await _change(store, 1, state)
    await _make_unreadable(database, 1)

    for used in (State.IN_FORCE, State.SHADOW):
        with pytest.raises(RequestError) as refused:
            await _change(store, 1, used)
        assert refused.value.error_code == "not_readable"
    before = await store.marks("e")
    retired = await _change(store, 1, State.RETIRED)

    assert before == (Mark(1, state, held=state is State.IN_FORCE),)
    assert isinstance(retired, Unreadable)
    assert (retired.state, retired.held, retired.changed_by) == (State.RETIRED, False, "admin")
    assert await store.marks("e") == ()


async def test_going_back_by_way_of_the_shadow_holds(store: SqlCalibrations):
    await store.supersede(None, own(3))
    await store.supersede(1, own(4))

    await _change(store, 1, State.SHADOW)
    back = await _change(store, 1, State.IN_FORCE)

    assert (back.state, back.held) == (State.IN_FORCE, True)
    assert not await store.supersede(1, own(5))
    assert await _states(store) == [(1, "in_force"), (2, "retired")]


async def test_the_newest_proposal_of_the_dispatcher_is_approved_by_way_of_the_shadow_too(
    store: SqlCalibrations, database: Database
):
    await store.propose_once(own(9))
    await _make_unreadable(database, 1)
    await store.supersede(None, own(3))
    await store.propose_once(own(4))
    await store.propose(made(replace(OWN, registry_version=5)))

    await _change(store, 3, State.SHADOW)
    approved = await _change(store, 3, State.IN_FORCE)

    assert (approved.state, approved.held) == (State.IN_FORCE, False)


async def test_a_self_calibration_that_a_person_proposed_is_held(store: SqlCalibrations):
    await store.propose(made(OWN))

    assert (await _change(store, 1, State.IN_FORCE)).held


async def test_using_one_that_is_in_force_by_itself_holds_it(store: SqlCalibrations):
    await store.supersede(None, own(3))

    used = await _change(store, 1, State.IN_FORCE)

    assert (used.held, used.changed_by) == (True, "admin")
    assert await store.marks("e") == (Mark(1, State.IN_FORCE, held=True),)
