"""Which calibration routing goes by, as this replica follows it and administrators change it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dispatcher.errors import DispatcherError, RequestError
from dispatcher.registry.repository import RegistrySnapshot
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.calibration_book import CalibrationBook
from dispatcher.routing.reindex import ReindexingRouter
from dispatcher.routing.stored_calibration import (
    LISTED,
    CalibrationRepository,
    State,
    Stored,
    Unreadable,
    Wanted,
)
from dispatcher.store.calibrations import SqlCalibrations
from dispatcher.store.engine import Database

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrating:
    """The book of a running replica beside the store of all of them."""

    router: ReindexingRouter
    store: CalibrationRepository
    book: CalibrationBook

    async def follow(self, snapshot: RegistrySnapshot) -> None:
        """Route to what is registered now, with the calibration that all replicas agree on."""
        await self.router.sync(snapshot.agents, snapshot.version)
        # The registration is stored already, and the loop that looks every second tries again.
        try:
            await self.book.look()
        except DispatcherError as error:
            logger.warning("calibration.not_followed", extra={"why": error.message})

    async def list(self) -> Sequence[Stored | Unreadable]:
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
