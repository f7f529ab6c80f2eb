"""Which calibration routing goes by, as this replica follows it and administrators change it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from dispatcher.errors import RequestError, UnavailableError
from dispatcher.registry.repository import RegistrySnapshot
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.calibration_book import CalibrationBook
from dispatcher.routing.reindex import ReindexingRouter
from dispatcher.routing.stored_calibration import CalibrationRepository, State, Stored, Wanted
from dispatcher.store.calibrations import SqlCalibrations
from dispatcher.store.engine import Database

LISTED = 200
"""The newest ones; older ones can still be asked for by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrating:
    """The book of a running replica beside the store of all of them."""

    router: ReindexingRouter
    store: CalibrationRepository
    book: CalibrationBook

    async def follow(self, snapshot: RegistrySnapshot) -> None:
        """Route to what is registered now, with the calibration that all replicas agree on."""
        await self.router.sync(snapshot.agents, snapshot.version)
        # The registration is stored already; what the replicas agree on follows within a second.
        with suppress(UnavailableError):
            await self.book.look()

    async def list(self) -> Sequence[Stored]:
        """The newest ones first, at most `LISTED`."""
        return await self.store.list(LISTED)

    async def show(self, number: int) -> Stored:
        """One of them; raises RequestError `not_found`."""
        found = await self.store.read(number)
        if found is None:
            raise RequestError("There is no calibration of this number.", code="not_found")
        return found

    async def change(self, number: int, state: State, by: str) -> Stored:
        """Put one in force or in shadow, or retire it; this replica goes by it when this returns.

        Raises RequestError `not_found`, `other_encoder` or `other_contrast`.
        """
        changed = await self.store.change(Wanted(number=number, state=state, by=by), self.book.in_use)
        await self.book.look()
        return changed


def calibrating(database: Database, router: ReindexingRouter) -> Calibrating:
    """Build it; nothing is read before the first look."""
    store = SqlCalibrations(database)
    book = CalibrationBook(store, router, contrast=contrast_digest())
    return Calibrating(router=router, store=store, book=book)
