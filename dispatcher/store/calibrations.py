"""Calibrations by number in SQL."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Text,
    delete,
    func,
    insert,
    select,
    text,
    type_coerce,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.errors import RequestError
from dispatcher.routing.calibration_record import calibration_document
from dispatcher.routing.stored_calibration import (
    DISPATCHER,
    SELF,
    InUse,
    Made,
    Mark,
    State,
    Stored,
    Unreadable,
    Wanted,
    is_held,
    is_repeated,
    not_readable,
)
from dispatcher.store.calibration_rows import to_listed, to_stored
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.tables import calibrations

SUPERSEDED_KEPT = 20
"""Self-calibrations of one encoder that others took the place of: each change of the registry makes one."""
_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('calibrations'), 0)")
_ACTIVE = (State.IN_FORCE, State.SHADOW)
_GIVES_WAY = {State.IN_FORCE: State.RETIRED, State.SHADOW: State.PROPOSED}
"""What becomes of the one whose place is taken."""


class SqlCalibrations:
    """Implements `routing.stored_calibration.CalibrationRepository`.

    Who writes has the table to itself, so that numbers have no gaps and a state is not given twice.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def marks(self, encoder_id: str) -> Sequence[Mark]:
        """See `CalibrationRepository.marks`."""
        query = (
            select(calibrations.c.number, calibrations.c.state, calibrations.c.held)
            .where(calibrations.c.encoder_id == encoder_id, calibrations.c.state.in_(_ACTIVE))
            .order_by(calibrations.c.number)
        )
        async with self._database.asking() as connection:
            found = (await connection.execute(query)).all()
        return tuple(Mark(number, State(state), held) for number, state, held in found)

    async def read(self, number: int) -> Stored | None:
        """See `CalibrationRepository.read`."""
        async with self._database.asking() as connection:
            row = await _row(connection, number)
        return None if row is None else to_stored(row)

    async def list(self, limit: int) -> Sequence[Stored | Unreadable]:
        """See `CalibrationRepository.list`."""
        query = select(calibrations).order_by(calibrations.c.number.desc()).limit(limit)
        async with self._database.asking() as connection:
            return tuple(map(to_listed, (await connection.execute(query)).mappings()))

    async def propose(self, made: Made) -> int:
        """See `CalibrationRepository.propose`."""
        async with self._changing() as connection:
            return await _add(connection, made, State.PROPOSED)

    async def propose_once(self, made: Made) -> None:
        """See `CalibrationRepository.propose_once`."""
        async with self._changing() as connection:
            encoder_id = made.recorded.calibration.encoder_id
            stored = await _own(connection, encoder_id, _may_matter_to(made))
            if any(is_repeated(made, one) for one in stored):
                return
            for older in stored:
                if older.state is State.PROPOSED and older.changed_by == DISPATCHER:
                    await _set(connection, older.number, State.RETIRED, DISPATCHER)
            await _add(connection, made, State.PROPOSED)
            await _forget_superseded(connection, encoder_id)

    async def supersede(self, expected: int | None, made: Made) -> bool:
        """See `CalibrationRepository.supersede`."""
        encoder_id = made.recorded.calibration.encoder_id
        async with self._changing() as connection:
            if await _in_state(connection, encoder_id, State.IN_FORCE) != expected:
                return False
            if expected is not None:
                if await _is_held(connection, expected):
                    return False
                await _set(connection, expected, State.RETIRED, DISPATCHER)
            await _add(connection, made, State.IN_FORCE)
            await _forget_superseded(connection, encoder_id)
        return True

    async def change(self, wanted: Wanted, in_use: InUse) -> Stored | Unreadable:
        """See `CalibrationRepository.change`."""
        async with self._changing() as connection:
            row = await _row(connection, wanted.number)
            if row is None:
                raise RequestError("There is no calibration of this number.", code="not_found")
            stored = to_listed(row)
            held = False
            if wanted.state in _GIVES_WAY:
                held = await _put_in_use(connection, stored, wanted, in_use)
            if (wanted.state, held) != (stored.state, stored.held):
                await _set(connection, stored.number, wanted.state, wanted.by, held=held)
            changed = await _row(connection, wanted.number)
        return stored if changed is None else to_listed(changed)

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction beside which nobody else's changes calibrations."""
        async with self._database.writing() as connection:
            if self._database.is_postgres:
                await connection.execute(_LOCK)
            yield connection


async def _row(connection: AsyncConnection, number: int) -> RowMapping | None:
    found = await connection.execute(select(calibrations).where(calibrations.c.number == number))
    return found.mappings().first()


async def _own(
    connection: AsyncConnection, encoder_id: str, narrowed: ColumnElement[bool]
) -> Sequence[Stored]:
    """The self-calibrations of an encoder that this version can read."""
    query = select(calibrations).where(
        calibrations.c.encoder_id == encoder_id, calibrations.c.origin == SELF, narrowed
    )
    found = map(to_listed, (await connection.execute(query)).mappings())
    return tuple(one for one in found if isinstance(one, Stored))


def _may_matter_to(made: Made) -> ColumnElement[bool]:
    """What waits, and what is of the same registry version: nothing else is worth reading under the lock."""
    version = f'"registry_version":{made.recorded.calibration.registry_version},'
    document = type_coerce(calibrations.c.document, Text)
    return (calibrations.c.state == State.PROPOSED) | document.contains(version, autoescape=True)


async def _newest_version(connection: AsyncConnection, encoder_id: str) -> int:
    made = await _own(connection, encoder_id, calibrations.c.made_by == DISPATCHER)
    return max((one.recorded.calibration.registry_version for one in made), default=0)


async def _is_held(connection: AsyncConnection, number: int) -> bool:
    found = await connection.execute(select(calibrations.c.held).where(calibrations.c.number == number))
    held: bool = found.scalar_one()
    return held


async def _in_state(connection: AsyncConnection, encoder_id: str, state: State) -> int | None:
    query = select(calibrations.c.number).where(
        calibrations.c.encoder_id == encoder_id, calibrations.c.state == state
    )
    found: int | None = (await connection.execute(query)).scalar_one_or_none()
    return found


async def _add(connection: AsyncConnection, made: Made, state: State) -> int:
    newest = (await connection.execute(select(func.max(calibrations.c.number)))).scalar_one()
    number: int = (newest or 0) + 1
    await connection.execute(
        insert(calibrations).values(
            number=number,
            encoder_id=made.recorded.calibration.encoder_id,
            origin=made.origin,
            state=state,
            document=calibration_document(made.recorded),
            report=dict(made.report),
            held=False,
            made_by=made.made_by,
            changed_by=made.made_by,
            created_ms=now_ms(),
            changed_ms=now_ms(),
        )
    )
    return number


async def _set(
    connection: AsyncConnection, number: int, state: State, by: str, *, held: bool = False
) -> None:
    changed = {"state": state, "changed_by": by, "held": held, "changed_ms": now_ms()}
    await connection.execute(update(calibrations).where(calibrations.c.number == number).values(changed))


async def _put_in_use(
    connection: AsyncConnection, stored: Stored | Unreadable, wanted: Wanted, in_use: InUse
) -> bool:
    """Have what is in its place give way; whether a person holds it there."""
    if isinstance(stored, Unreadable):
        raise not_readable()
    in_use.check(stored.recorded)
    taken = await _in_state(connection, stored.encoder_id, wanted.state)
    if taken is not None and taken != stored.number:
        await _set(connection, taken, _GIVES_WAY[wanted.state], wanted.by)
    return is_held(stored, wanted.state, await _newest_version(connection, stored.encoder_id))


async def _forget_superseded(connection: AsyncConnection, encoder_id: str) -> None:
    superseded = (
        select(calibrations.c.number)
        .where(
            calibrations.c.encoder_id == encoder_id,
            calibrations.c.origin == SELF,
            calibrations.c.state == State.RETIRED,
            calibrations.c.changed_by == DISPATCHER,
        )
        .order_by(calibrations.c.number.desc())
        .offset(SUPERSEDED_KEPT)
        .limit(1)
    )
    last = (await connection.execute(superseded)).scalar_one_or_none()
    if last is not None:
        await connection.execute(
            delete(calibrations).where(
                calibrations.c.encoder_id == encoder_id,
                calibrations.c.origin == SELF,
                calibrations.c.state == State.RETIRED,
                calibrations.c.changed_by == DISPATCHER,
                calibrations.c.number <= last,
            )
        )
