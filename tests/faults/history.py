"""What clients saw, what agents ran, what the ledger kept; and the rules that no fault may break (pure).

Times are seconds of one host's monotonic clock: clients, agents and faults of a run share it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

MAX_ATTEMPTS = 3
OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A client is about to send a request. `repeatable`: its capability was declared idempotent."""

    time: float
    key: str
    nonce: str
    repeatable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A 2xx answer."""

    time: float
    key: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A 4xx or 5xx answer: nothing was accepted, or nobody says so."""

    time: float
    key: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """The connection broke: nobody knows whether it was accepted."""

    time: float
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A request as a gateway showed it. `document` is all of it, `nonce` and `run` what its agent echoed."""

    time: float
    request_id: str
    status: str
    document: str
    attempts: int = 1
    nonce: str | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A handler began. `run` is new at every start, `instance` at every start of a process."""

    time: float
    run: str
    agent: str
    instance: str
    request_id: str
    key: str
    attempt: int
    nonce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A handler returned, or was cancelled: then it left no answer and a later attempt may repeat it."""

    time: float
    run: str
    cancelled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """An agent's process surely runs no longer."""

    time: float
    instance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the ledger made of a result frame: `kind` as in `dispatch.request.ResultKind`."""

    request_id: str
    kind: str
    run: str | None


Event = Posted | Accepted | Refused | Unanswered | Read | Started | Ended | Died | Recorded


class Kind(StrEnum):
    """What can go wrong."""

    LOST = "lost"
    """I1: accepted, but it never ended."""
    FORKED = "forked"
    """I1: one idempotency key became two requests."""
    CHANGED = "changed"
    """I3: an ended request became another one."""
    LATE_APPLIED = "late_applied"
    """I3: a result counted after another one, or after the end."""
    DOUBLED = "doubled"
    """I2: started again while the first run or its stored result was alive, or although it must not be."""
    EXCESS = "excess"
    """I7: more than three attempts."""
    SWAPPED = "swapped"
    """An answer that belongs to another request."""
    INVENTED = "invented"
    """I5: an answer or a result that no run of the request gave, or a run that nobody asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule; `subject` is a request, or an idempotency key."""

    kind: Kind
    subject: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Counts of requests, of starts beyond the first that are allowed, and all that is wrong."""

    accepted: int
    terminal: int
    completed: int
    unknown: int
    """Keys that were sent and never answered: neither promised nor refused."""
    reruns: int
    late_starts: int
    """Handlers that began after their request had been seen ended: useless, and against no invariant."""
    violations: tuple[Violation, ...]

    def count(self, kind: Kind) -> int:
        """How many violations are of this kind."""
        return sum(violation.kind is kind for violation in self.violations)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRules:
    """`storing_s`: a run that ended less than this before its process died may have left no stored result."""

    storing_s: float = 1.0


def check(events: Iterable[Event], rules: CheckRules | None = None) -> Verdict:
    """Judge a history that is complete: everything was drained and read once more at the end."""
    found = _index(events)
    reruns, doubled = _judge_starts(found, rules or CheckRules())
    violations = [*_forked(found), *doubled, *_unasked(found)]
    for request_id in found.key_of:
        violations += _judge_request(found, request_id)
    ended = [reads[-1] for request_id in found.key_of if (reads := found.terminal(request_id))]
    answered = {*found.accepted, *found.refused}
    return Verdict(
        accepted=len(found.key_of),
        terminal=len(ended),
        completed=sum(read.status == "completed" for read in ended),
        unknown=len(found.posted.keys() - answered),
        reruns=reruns,
        late_starts=_late_starts(found),
        violations=tuple(violations),
    )


@dataclass(slots=True)
class _Index:
    posted: dict[str, Posted] = field(default_factory=dict)
    once_only: set[str] = field(default_factory=set)
    """Nonces of what must not run twice."""
    accepted: dict[str, set[str]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    key_of: dict[str, str] = field(default_factory=dict)
    reads: dict[str, list[Read]] = field(default_factory=dict)
    starts: dict[str, list[Started]] = field(default_factory=dict)
    runs: dict[str, Started] = field(default_factory=dict)
    ends: dict[str, Ended] = field(default_factory=dict)
    deaths: dict[str, float] = field(default_factory=dict)
    records: dict[str, list[Recorded]] = field(default_factory=dict)

    def terminal(self, request_id: str) -> list[Read]:
        """The reads from the first one that showed an end, oldest first."""
        reads = sorted(self.reads.get(request_id, ()), key=lambda read: read.time)
        first = next((n for n, read in enumerate(reads) if read.status != OPEN), len(reads))
        return reads[first:]


def _index(events: Iterable[Event]) -> _Index:
    found = _Index()
    for event in events:
        match event:
            case Posted():
                found.posted[event.key] = event
                found.once_only |= set() if event.repeatable else {event.nonce}
            case Accepted():
                found.accepted.setdefault(event.key, set()).add(event.request_id)
                found.key_of[event.request_id] = event.key
            case Refused():
                found.refused.add(event.key)
            case Read():
                found.reads.setdefault(event.request_id, []).append(event)
            case Recorded():
                found.records.setdefault(event.request_id, []).append(event)
            case Started() | Ended() | Died():
                _index_run(found, event)
    return found


def _index_run(found: _Index, event: Started | Ended | Died) -> None:
    match event:
        case Started():
            found.starts.setdefault(event.key, []).append(event)
            found.runs[event.run] = event
        case Ended():
            found.ends[event.run] = event
        case Died():
            found.deaths[event.instance] = event.time


def _forked(found: _Index) -> Iterable[Violation]:
    for key, requests in found.accepted.items():
        if len(requests) > 1:
            yield Violation(kind=Kind.FORKED, subject=key, detail=f"became {sorted(requests)}")


def _unasked(found: _Index) -> Iterable[Violation]:
    nonces = {posted.nonce for posted in found.posted.values()}
    for run in found.runs.values():
        if run.nonce not in nonces:
            yield Violation(kind=Kind.INVENTED, subject=run.request_id, detail=f"{run.agent} ran {run.nonce}")


def _judge_request(found: _Index, request_id: str) -> list[Violation]:
    def broken(kind: Kind, detail: str) -> Violation:
        return Violation(kind=kind, subject=request_id, detail=detail)

    reads = found.terminal(request_id)
    if not reads:
        return [broken(Kind.LOST, "accepted and never ended")]
    violations = [broken(kind, detail) for kind, detail in _changes(found, reads)]
    attempts = max(read.attempts for read in reads)
    if attempts > MAX_ATTEMPTS:
        violations.append(broken(Kind.EXCESS, f"{attempts} attempts"))
    wrong = _judge_answer(found, reads[0])
    if wrong is not None:
        violations.append(broken(*wrong))
    return violations


def _changes(found: _Index, reads: Sequence[Read]) -> Iterable[tuple[Kind, str]]:
    records = found.records.get(reads[0].request_id, ())
    applied = [record for record in records if record.kind == "accepted"]
    too_late = {record.run for record in records if record.kind in {"late", "conflict"}}
    changed = [(a, b) for a, b in pairwise(reads) if a.document != b.document]
    for before, after in changed:
        came_late = after.run is not None and before.run != after.run
        kind = Kind.LATE_APPLIED if came_late else Kind.CHANGED
        yield kind, f"{before.document} became {after.document}"
    if len(applied) > 1:
        yield Kind.LATE_APPLIED, f"{len(applied)} results were accepted"
    elif not changed and reads[0].run in too_late - {record.run for record in applied} - {None}:
        yield Kind.LATE_APPLIED, f"shows run {reads[0].run}, which the ledger had put aside"
    elif applied and applied[0].run is not None and applied[0].run not in found.runs:
        yield Kind.INVENTED, f"no run gave the accepted result {applied[0].run}"


def _judge_answer(found: _Index, read: Read) -> tuple[Kind, str] | None:
    if read.nonce is None and read.run is None:
        return (Kind.INVENTED, "completed without a run") if read.status == "completed" else None
    mine = found.posted[found.key_of[read.request_id]].nonce
    run = found.runs.get(read.run or "")
    if read.nonce != mine and read.nonce in {posted.nonce for posted in found.posted.values()}:
        return Kind.SWAPPED, f"answers {read.nonce}, asked was {mine}"
    if run is not None and run.request_id != read.request_id:
        return Kind.SWAPPED, f"run {run.run} was for {run.request_id}"
    if read.nonce != mine or run is None or run.run not in found.ends:
        return Kind.INVENTED, f"no run gave {read.nonce} ({read.run})"
    return None


def _judge_starts(found: _Index, rules: CheckRules) -> tuple[int, list[Violation]]:
    reruns, violations = 0, []
    for key, unordered in found.starts.items():
        starts = sorted(unordered, key=lambda start: start.time)
        over = {start.attempt for start in starts if start.attempt > MAX_ATTEMPTS}
        if over:
            violations.append(Violation(kind=Kind.EXCESS, subject=key, detail=f"attempts {sorted(over)} ran"))
        for number, later in enumerate(starts[1:], start=1):
            reasons = [why for earlier in starts[:number] if (why := _conflict(found, rules, earlier, later))]
            if reasons:
                violations.append(Violation(kind=Kind.DOUBLED, subject=key, detail=reasons[0]))
            else:
                reruns += 1
    return reruns, violations


def _late_starts(found: _Index) -> int:
    ended_at = {name: reads[0].time for name in found.key_of if (reads := found.terminal(name))}
    return sum(run.time > ended_at.get(run.request_id, math.inf) for run in found.runs.values())


def _conflict(found: _Index, rules: CheckRules, earlier: Started, later: Started) -> str | None:
    """Why `later` must not have started after `earlier`, None where it was allowed to."""
    pair = f"{earlier.run} at {earlier.agent} and {later.run} at {later.agent}"
    if earlier.nonce in found.once_only:
        return f"not idempotent, yet started twice: {pair}"
    if later.agent != earlier.agent:
        return None if later.attempt != earlier.attempt else f"one attempt ran at two agents: {pair}"
    died = found.deaths.get(earlier.instance)
    ended = found.ends.get(earlier.run)
    if ended is None or ended.time > later.time:
        return None if died is not None and died <= later.time else f"the first run was alive: {pair}"
    if ended.cancelled and later.attempt > earlier.attempt:
        return None
    may_be_unstored = died is not None and ended.time <= died <= min(ended.time + rules.storing_s, later.time)
    return None if may_be_unstored else f"its result was stored: {pair}"


def counts(verdicts: Iterable[Verdict]) -> Mapping[str, int]:
    """Sums over several histories."""
    every = tuple(verdicts)
    listed = [violation.kind for verdict in every for violation in verdict.violations]
    return {
        "accepted": sum(verdict.accepted for verdict in every),
        "terminal": sum(verdict.terminal for verdict in every),
        "lost": listed.count(Kind.LOST),
        "doubled": listed.count(Kind.DOUBLED),
        "rerun": sum(verdict.reruns for verdict in every),
        "late_starts": sum(verdict.late_starts for verdict in every),
        "other_violations": sum(kind not in {Kind.LOST, Kind.DOUBLED} for kind in listed),
    }
