"""The inbox: an agent's memory of which tasks it began, which it declined, and how they ended (I2).

Deliveries come at least once. `judge` is the whole rule of what one of them may do and of what is
kept of it; a store applies it atomically, so that two deliveries never both run.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Literal, Protocol

from dispatcher.protocol.frames import TaskFrame
from dispatcher.protocol.topology import DEAD_LETTER_TTL_MS
from dispatcher.records import Struct

KEEP_S = DEAD_LETTER_TTL_MS / 1000 + 24 * 3600
"""How long a lasting store remembers: longer than a dead letter can wait to be put back."""
_ATTEMPTS = 3
"""The most that a task has (I7)."""


def serial_of(task: TaskFrame) -> int:
    """The attempt's number over all repetitions of the task: later ones are higher."""
    return task.repeat * _ATTEMPTS + task.attempt


class Claim(Struct, frozen=True, kw_only=True):
    """One delivery asks for the right to run its task.

    `attempt` is its `serial_of`. `owner` is the process that asks. A claim holds for `hold_s` seconds;
    whoever finds it running after that takes its owner for dead. `may_start` False only looks, and
    leaves `refusal` behind, where there is one: what this attempt is told, and so must every copy of
    it be (I2).
    `envelope` is kept until the result is told, for a task whose delivery is settled before that.
    """

    key: str
    owner: str
    attempt: int
    idempotent: bool
    hold_s: float
    may_start: bool = True
    refusal: bytes | None = None
    envelope: bytes | None = None


class Record(Struct, frozen=True, kw_only=True):
    """What is stored of one key. `outcome` None: running until `expires_at`, on the store's own clock.

    A refusal is an outcome that is `retryable`: a later attempt may run. What `failed` for good may
    run again only where an operator has the task repeated.
    """

    owner: str
    attempt: int
    expires_at: float
    outcome: bytes | None = None
    retryable: bool = False
    failed: bool = False
    envelope: bytes | None = None


class Verdict(Enum):
    """What a delivery may do."""

    RUN = "run"
    """The claim is written: run the handler."""
    REPLAY = "replay"
    """Finished or declined before: answer with the stored outcome."""
    ELSEWHERE = "elsewhere"
    """Another process runs it now."""
    UNKNOWN = "unknown"
    """Begun, not finished, and not to be repeated: answer `outcome_unknown`."""
    NOT_STARTED = "not_started"
    """It could run, but the delivery may not start it; the claim's refusal is written, if it has one."""
    FULL = "full"
    """No room to remember it, so it must not run; nothing is written."""


class Judgement(Struct, frozen=True, kw_only=True):
    """The verdict, with the stored outcome where it is REPLAY; `record` is what has to be stored now."""

    verdict: Verdict
    outcome: bytes | None = None
    record: Record | None = None


class Untold(Struct, frozen=True, kw_only=True):
    """A task whose delivery is gone and whose result nobody surely told; `outcome` None: it broke off."""

    key: str
    owner: str
    envelope: bytes
    outcome: bytes | None


def judge(record: Record | None, claim: Claim, now: float) -> Judgement:
    """What the delivery behind `claim` may do.

    A refusal, or a failure that may be retried, is replayed to its own attempt and to earlier ones,
    and gives way to a later one; any failure of what is idempotent gives way to a later repetition. A
    run whose owner is gone is repeated only if the capability is idempotent.
    """
    if record is None:
        return _begin(claim, now)
    if record.outcome is not None:
        if _gives_way(record, claim):
            return _begin(claim, now)
        return Judgement(verdict=Verdict.REPLAY, outcome=record.outcome)
    if record.owner != claim.owner and now < record.expires_at:
        return Judgement(verdict=Verdict.ELSEWHERE)
    return _begin(claim, now) if claim.idempotent else Judgement(verdict=Verdict.UNKNOWN)


def _gives_way(record: Record, claim: Claim) -> bool:
    if record.retryable and claim.attempt > record.attempt:
        return True
    is_repeated = _repetition(claim.attempt) > _repetition(record.attempt)
    return record.failed and claim.idempotent and is_repeated


def _repetition(serial: int) -> int:
    return (serial - 1) // _ATTEMPTS


def _begin(claim: Claim, now: float) -> Judgement:
    if not claim.may_start and claim.refusal is None:
        return Judgement(verdict=Verdict.NOT_STARTED)
    record = Record(
        owner=claim.owner,
        attempt=claim.attempt,
        expires_at=now + claim.hold_s,
        outcome=None if claim.may_start else claim.refusal,
        retryable=not claim.may_start,
        envelope=claim.envelope if claim.may_start else None,
    )
    return Judgement(verdict=Verdict.RUN if claim.may_start else Verdict.NOT_STARTED, record=record)


class Inbox(Protocol):
    """Where claims and outcomes are kept. Every method raises `UnavailableError` when it can't."""

    @property
    def kind(self) -> Literal["memory", "sqlite", "postgres"]:
        """What is told at registration; private kinds allow one instance only."""
        ...

    @property
    def inbox_id(self) -> str | None:
        """Which memory this is, told at registration; None where it ends with the process."""
        ...

    async def claim(self, claim: Claim) -> Judgement:
        """Judge and write the judgement's record, as one step. It is durable when this returns."""
        ...

    async def hold(self, key: str, owner: str, hold_s: float) -> None:
        """Let the owner's unfinished claim hold for `hold_s` seconds from now, if it is still the owner's."""
        ...

    async def finish(
        self, key: str, owner: str, outcome: bytes, *, retryable: bool, failed: bool = False
    ) -> None:
        """Store how the owner's run ended; nothing happens if another has taken the key over."""
        ...

    async def told(self, key: str, owner: str) -> None:
        """This owner's result is surely told: forget the envelope, unless another one runs the task now."""
        ...

    async def untold(self, owner: str) -> Sequence[Untold]:
        """At most 100 tasks that other owners, whose claims ran out, left behind with their envelopes."""
        ...

    async def aclose(self) -> None:
        """Give up files, threads and connections."""
        ...
