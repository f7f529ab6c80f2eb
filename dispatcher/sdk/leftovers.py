"""Results of long tasks that an instance stored, or owed, and could not tell before it was gone."""

import logging
from typing import NoReturn

from msgspec import DecodeError

from dispatcher.errors import DispatcherError
from dispatcher.sdk.envelope import Envelope
from dispatcher.sdk.inbox import Untold
from dispatcher.sdk.outcome import Outcome, outcome_unknown
from dispatcher.sdk.parts import Parts
from dispatcher.sdk.telling import Teller

_log = logging.getLogger(__name__)


class Leftovers:
    """Looks into the inbox again and again; a run that broke off is told as `outcome_unknown`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._teller = Teller(parts)

    async def run(self) -> NoReturn:
        """Look now and every `leftovers_s` seconds, until cancelled."""
        while True:
            try:
                await self.tell()
            except DispatcherError as error:
                _log.warning("inbox.failed", extra={"reason": error.error_code})
            await self._parts.clock.sleep(self._parts.rules.leftovers_s)

    async def tell(self) -> None:
        """Tell everything that is left now."""
        for left in await self._parts.inbox.untold(self._parts.owner):
            await self._tell(left)

    async def _tell(self, left: Untold) -> None:
        try:
            envelope = Envelope.decode(left.envelope)
        except DecodeError:
            _log.warning("inbox.unreadable", extra={"bytes": len(left.envelope)})
        else:
            outcome = self._outcome(left, envelope)
            _log.info("result.left_behind", extra={"task_id": envelope.task_id, "status": outcome.status})
            await self._teller.tell(outcome, envelope)
        await self._parts.inbox.told(left.key, left.owner)

    def _outcome(self, left: Untold, envelope: Envelope) -> Outcome:
        if left.outcome is not None:
            return Outcome.decode(left.outcome)
        handler = self._parts.agent.handlers.get(envelope.capability)
        return outcome_unknown(idempotent=handler is not None and handler.idempotent)
