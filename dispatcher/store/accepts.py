"""The transaction that accepts a group of new requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from dispatcher.dispatch.lifecycle.ledger import Change, KeyedRequest, Offer
from dispatcher.dispatch.lifecycle.session import SessionChange
from dispatcher.records import Struct
from dispatcher.store.changes import ChangeSet
from dispatcher.store.database_time import DatabaseTime
from dispatcher.store.direct import DirectWriter
from dispatcher.store.recent import RecentStates, Stored

Name = tuple[str, str]
"""What an offer is known by: its caller and key where it has a key, else ("", request id)."""


class NotAccepted(Enum):
    """Why an offer was not stored."""

    TAKEN = auto()
    """A request with its key or id is in the ledger already."""
    UNSURE = auto()
    """As before, and that may be the offer's own request: the group was sent twice."""


class Accepted(Struct, frozen=True, kw_only=True):
    """A stored request, and what its session has yet to remember of it."""

    change: Change
    session: SessionChange | None


Answer = Accepted | KeyedRequest | NotAccepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepts:
    """Stores new requests, and keeps their states for the changes that follow."""

    writer: DirectWriter
    recent: RecentStates
    time: DatabaseTime

    async def apply(self, offers: Sequence[Offer]) -> list[Answer]:
        """One answer per offer, committed: its change, or what has its name already.

        The first offer of a name wins, within the group as in the whole ledger.
        """
        firsts: dict[Name, Offer] = {}
        for offer in offers:
            firsts.setdefault(_name(offer), offer)
        now = self.time.now_ms()
        if now is None:
            sent_at = self.time.sending()
            self.time.note(now := await self.writer.read_now(), sent_at)
        changes = ChangeSet(now)
        steps = {}
        for offer in firsts.values():
            step = steps[offer.request_id] = offer.build(now)
            changes.add_new(step.state)
            changes.add_records(step)
        sent_at = self.time.sending()
        written = await self.writer.insert(changes)
        self.time.note(written.now_ms, sent_at)
        for request_id in written.request_ids:
            self.recent.keep(Stored(steps[request_id].state, 0))
        missing = NotAccepted.UNSURE if written.is_repeated else NotAccepted.TAKEN

        def answer(offer: Offer) -> Answer:
            first = firsts[_name(offer)]
            if first.request_id not in written.request_ids:
                return missing
            if first is offer:
                step = steps[offer.request_id]
                change = Change(before=None, after=step.state, now_ms=now)
                return Accepted(change=change, session=step.session)
            return KeyedRequest(request_id=first.request_id, body_digest=first.body_digest)

        return [answer(offer) for offer in offers]


def _name(offer: Offer) -> Name:
    if offer.idempotency_key is None:
        return ("", offer.request_id)
    return (offer.caller, offer.idempotency_key)
