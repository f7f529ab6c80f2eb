"""Which calibration routing goes by, as this replica follows it and administrators change it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dispatcher.errors import ConfigurationError, DispatcherError, RequestError
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
    not_readable,
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
        await self._look()

    async def list(self) -> Sequence[Stored | Unreadable]:
        """The newest ones first, at most `LISTED`."""
        return await self.store.list(LISTED)

    async def show(self, number: int) -> Stored:
        """One of them; raises RequestError `not_found` or `not_readable`."""
        try:
            found = await self.store.read(number)
        except ConfigurationError as error:
            raise not_readable() from error
        if found is None:
            raise RequestError("There is no calibration of this number.", code="not_found")
        return found

    async def change(self, number: int, state: State, by: str) -> Stored | Unreadable:
        """Put one in force or in shadow, or retire it; this replica goes by it within a second.

        Raises RequestError `not_found`, `not_readable`, `other_encoder` or `other_contrast`.
        """
        changed = await self.store.change(Wanted(number=number, state=state, by=by), self.book.in_use)
        await self._look()
        return changed

    async def _look(self) -> None:
        """At once where that works: what is to be followed is stored, and a loop looks every second too."""
        try:
            await self.book.look()
        except DispatcherError as error:
            logger.warning("calibration.not_followed", extra={"why": error.message})


def calibrating(database: Database, router: ReindexingRouter) -> Calibrating:
    """Build it; nothing is read before the first look."""
    store = SqlCalibrations(database)
    book = CalibrationBook(store, router, contrast=contrast_digest())
    return Calibrating(router=router, store=store, book=book)
