"""The inbox: an agent's memory of which tasks it began and how they ended (I2).

Deliveries come at least once. `judge` is the whole rule of what one of them may do; a store
applies it atomically with writing the claim, so that two deliveries never both run.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One delivery asks for the right to run its task.

    `owner` is the process that asks. A claim holds for `hold_s` seconds; whoever finds it
    running after that takes its owner for dead. `may_start` False only looks.
    """

    key: str
    owner: str
    attempt: int
    idempotent: bool
    hold_s: float
    may_start: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is stored of one key. `outcome` None: running until `expires_at`, on the store's own clock."""

    owner: str
    attempt: int
    expires_at: float
    outcome: bytes | None = None
    retryable: bool = False


class Verdict(Enum):
    """What a delivery may do."""

    RUN = "run"
    """The claim is written: run the handler."""
    REPLAY = "replay"
    """Finished before: answer with the stored outcome."""
    ELSEWHERE = "elsewhere"
    """Another process runs it now."""
    UNKNOWN = "unknown"
    """Begun, not finished, and not to be repeated: answer `outcome_unknown`."""
    NOT_STARTED = "not_started"
    """It could run, but the delivery may not start it; nothing is written."""
    FULL = "full"
    """No room to remember it, so it must not run; nothing is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict, with the stored outcome where it is REPLAY."""

    verdict: Verdict
    outcome: bytes | None = None


def judge(record: Record | None, claim: Claim, now: float) -> Judgement:
    """What the delivery behind `claim` may do.

    A failure that may be retried is replayed to its own attempt and gives way to a later one.
    A run whose owner is gone is repeated only if the capability is idempotent.
    """
    may_run = Judgement(verdict=Verdict.RUN if claim.may_start else Verdict.NOT_STARTED)
    if record is None:
        return may_run
    if record.outcome is not None:
        if record.retryable and claim.attempt > record.attempt:
            return may_run
        return Judgement(verdict=Verdict.REPLAY, outcome=record.outcome)
    if record.owner != claim.owner and now < record.expires_at:
        return Judgement(verdict=Verdict.ELSEWHERE)
    return may_run if claim.idempotent else Judgement(verdict=Verdict.UNKNOWN)


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
        """Judge and, on RUN, write the claim, as one step. RUN is durable when this returns."""
        ...

    async def hold(self, key: str, owner: str, hold_s: float) -> None:
        """Let the owner's unfinished claim hold for `hold_s` seconds from now, if it is still the owner's."""
        ...

    async def finish(self, key: str, owner: str, outcome: bytes, *, retryable: bool) -> None:
        """Store how the owner's run ended; nothing happens if another has taken the key over."""
        ...

    async def aclose(self) -> None:
        """Give up files and threads."""
        ...
