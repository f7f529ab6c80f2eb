"""Clean histories made of small stories, and violations planted into them: they test the checker."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from tests.faults.history import (
    Accepted,
    Died,
    Ended,
    Event,
    Kind,
    Posted,
    Read,
    Recorded,
    Refused,
    Started,
    Unanswered,
)


class Story(Enum):
    """What happens to one request; all of it is allowed."""

    ANSWERED = "answered"
    POSTED_TWICE = "the first answer got lost"
    REFUSED = "refused, and given up"
    SILENT = "never answered, though it ran"
    NEVER_STARTED = "no agent took it"
    RERUN_HERE = "killed while running, then again at the same agent"
    UNSTORED = "killed between its end and its inbox"
    REPLAYED = "killed long after its end: told from the inbox"
    RERUN_ELSEWHERE = "given up, then run by another agent; both answer"
    CANCELLED = "out of time, then again at the same agent"
    UNKNOWN = "killed while running, not to be repeated"
    LATE = "ended by its deadline, answered afterwards"


class Teller:
    """Tells stories as events; every request has names of its own."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._told = 0
        self.events: list[Event] = []

    def tell(self, story: Story) -> None:
        """Add one request's events, beginning at a random time."""
        self._told += 1
        self._name = f"{self._told}"
        self._time = self._chance.uniform(0, 100)
        TALES[story](self)

    def _next(self, gap: float | None = None) -> float:
        self._time += self._chance.uniform(0.01, 2) if gap is None else gap
        return self._time

    def post(self, *, repeatable: bool = True) -> None:
        key, nonce = f"key{self._name}", f"nonce{self._name}"
        self.events.append(Posted(time=self._next(), key=key, nonce=nonce, repeatable=repeatable))

    def accept(self) -> None:
        event = Accepted(time=self._next(), key=f"key{self._name}", request_id=f"request{self._name}")
        self.events.append(event)

    def unanswered(self) -> None:
        self.events.append(Unanswered(time=self._next(), key=f"key{self._name}"))

    def refuse(self) -> None:
        self.events.append(Refused(time=self._next(), key=f"key{self._name}", code="unavailable"))

    def start(self, run: int = 1, *, agent: str = "ada", process: int = 1, attempt: int = 1) -> None:
        self.events.append(
            Started(
                time=self._next(),
                run=f"run{self._name}.{run}",
                agent=agent,
                instance=f"{agent}{self._name}.{process}",
                request_id=f"request{self._name}",
                key=f"request{self._name}:0",
                attempt=attempt,
                nonce=f"nonce{self._name}",
            )
        )

    def end(self, run: int = 1, *, cancelled: bool = False) -> None:
        self.events.append(Ended(time=self._next(), run=f"run{self._name}.{run}", cancelled=cancelled))

    def die(self, *, agent: str = "ada", process: int = 1, gap: float | None = None) -> None:
        self.events.append(Died(time=self._next(gap), instance=f"{agent}{self._name}.{process}"))

    def record(self, kind: str, run: int = 1) -> None:
        event = Recorded(request_id=f"request{self._name}", kind=kind, run=f"run{self._name}.{run}")
        self.events.append(event)

    def read(self, run: int | None = 1, *, attempts: int = 1) -> None:
        """Read it while it is open, once ended and once more."""
        request_id, status = f"request{self._name}", "completed" if run else "failed"
        self.events.append(
            Read(time=self._next(-0.001), request_id=request_id, status="open", document="open")
        )
        told = {"nonce": f"nonce{self._name}", "run": f"run{self._name}.{run}"} if run else {}
        for _ in range(2):
            self.events.append(
                Read(
                    time=self._next(),
                    request_id=request_id,
                    status=status,
                    document=f"{status} {run}",
                    attempts=attempts,
                    **told,
                )
            )


def _answered(teller: Teller) -> None:
    _run_once(teller)
    teller.record("accepted")
    teller.read()


def _run_once(teller: Teller) -> None:
    teller.post()
    teller.accept()
    teller.start()
    teller.end()


def _posted_twice(teller: Teller) -> None:
    teller.post()
    teller.unanswered()
    teller.refuse()
    teller.accept()
    teller.accept()
    teller.start()
    teller.end()
    teller.record("accepted")
    teller.record("duplicate")
    teller.read()


def _refused(teller: Teller) -> None:
    teller.post()
    teller.refuse()


def _silent(teller: Teller) -> None:
    teller.post()
    teller.unanswered()
    teller.start()
    teller.end()


def _never_started(teller: Teller) -> None:
    teller.post(repeatable=False)
    teller.accept()
    teller.read(None, attempts=3)


def _rerun_here(teller: Teller) -> None:
    teller.post()
    teller.accept()
    teller.start()
    teller.die()
    teller.start(2, process=2)
    teller.end(2)
    teller.record("accepted", 2)
    teller.read(2)


def _unstored(teller: Teller) -> None:
    _run_once(teller)
    teller.die(gap=0.2)
    teller.start(2, process=2)
    teller.end(2)
    teller.record("accepted", 2)
    teller.read(2)


def _replayed(teller: Teller) -> None:
    _run_once(teller)
    teller.die(gap=5)
    teller.record("accepted")
    teller.read()


def _rerun_elsewhere(teller: Teller) -> None:
    teller.post()
    teller.accept()
    teller.start()
    teller.start(2, agent="bob", attempt=2)
    teller.end()
    teller.end(2)
    teller.record("accepted", 2)
    teller.record("conflict", 1)
    teller.read(2, attempts=2)


def _cancelled(teller: Teller) -> None:
    teller.post()
    teller.accept()
    teller.start()
    teller.end(cancelled=True)
    teller.start(2, attempt=2)
    teller.end(2)
    teller.record("superseded")
    teller.record("accepted", 2)
    teller.read(2, attempts=2)


def _unknown(teller: Teller) -> None:
    teller.post(repeatable=False)
    teller.accept()
    teller.start()
    teller.die()
    teller.read(None)


def _late(teller: Teller) -> None:
    teller.post(repeatable=False)
    teller.accept()
    teller.start()
    teller.read(None)
    teller.end()
    teller.record("late")


TALES: Mapping[Story, Callable[[Teller], None]] = {
    Story.ANSWERED: _answered,
    Story.POSTED_TWICE: _posted_twice,
    Story.REFUSED: _refused,
    Story.SILENT: _silent,
    Story.NEVER_STARTED: _never_started,
    Story.RERUN_HERE: _rerun_here,
    Story.UNSTORED: _unstored,
    Story.REPLAYED: _replayed,
    Story.RERUN_ELSEWHERE: _rerun_elsewhere,
    Story.CANCELLED: _cancelled,
    Story.UNKNOWN: _unknown,
    Story.LATE: _late,
}


def told(stories: Sequence[Story], seed: int) -> list[Event]:
    """A clean history of these stories, in random order of events."""
    teller = Teller(seed)
    for story in stories:
        teller.tell(story)
    random.Random(seed).shuffle(teller.events)
    return teller.events


Plant = Callable[[list[Event], Read, random.Random], list[Event]]
"""History, the last read of some answered request, chance -> the history with one violation in it."""


def _lose(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    return [e for e in events if not (isinstance(e, Read) and e.request_id == read.request_id)]


def _reopen(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    return [*events, replace(read, time=read.time + 1, status="open", document="open", nonce=None, run=None)]


def _change(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    return [*events, replace(read, time=read.time + 1, document="another text")]


def _fork(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    accepted = next(e for e in events if isinstance(e, Accepted) and e.request_id == read.request_id)
    twin = f"{read.request_id}-twin"
    return [*events, replace(accepted, request_id=twin), *_reread(read, twin)]


def _reread(read: Read, request_id: str) -> list[Event]:
    return [replace(read, request_id=request_id, status="failed", document="failed", nonce=None, run=None)]


def _start_of(events: list[Event], read: Read) -> Started:
    return next(e for e in events if isinstance(e, Started) and e.run == read.run)


def _double_alive(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    start = _start_of(events, read)
    return [*events, replace(start, run=f"{start.run}-again", time=start.time + 0.001)]


def _double_stored(events: list[Event], read: Read, chance: random.Random) -> list[Event]:
    start = _start_of(events, read)
    again = replace(start, run=f"{start.run}-again", attempt=chance.choice([1, 2]), time=read.time + 10)
    if chance.random() < 0.5:
        return [*events, again]
    died = Died(time=read.time + 5, instance=start.instance)
    return [*events, died, replace(again, instance=f"{start.instance}-next")]


def _double_elsewhere(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    start = _start_of(events, read)
    return [*events, replace(start, run=f"{start.run}-again", agent="cleo", time=start.time + 0.1)]


def _double_once_only(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    start = _start_of(events, read)
    changed = [
        replace(e, repeatable=False) if isinstance(e, Posted) and e.nonce == read.nonce else e for e in events
    ]
    return [*changed, replace(start, run=f"{start.run}-again", agent="cleo", attempt=2, time=read.time + 3)]


def _exceed(events: list[Event], read: Read, chance: random.Random) -> list[Event]:
    more = chance.randint(4, 9)
    same = [e for e in events if isinstance(e, Read) and e.request_id == read.request_id]
    return [replace(e, attempts=more) if e in same else e for e in events]


def _exceed_starts(events: list[Event], read: Read, chance: random.Random) -> list[Event]:
    start = _start_of(events, read)
    more = replace(start, run=f"{start.run}-more", agent="cleo", attempt=chance.randint(4, 9), time=read.time)
    return [*events, more]


def _answer_with(events: list[Event], read: Read, nonce: str | None, run: str | None) -> list[Event]:
    def mine(event: Event) -> bool:
        is_read = isinstance(event, Read) and event.request_id == read.request_id and event.run is not None
        return is_read or (isinstance(event, Recorded) and event.request_id == read.request_id)

    return [*(e for e in events if not mine(e)), replace(read, nonce=nonce, run=run)]


def _swap(events: list[Event], read: Read, chance: random.Random) -> list[Event]:
    others = [e for e in events if isinstance(e, Read) and e.run and e.request_id != read.request_id]
    other = chance.choice(others)
    return _answer_with(events, read, other.nonce if chance.random() < 0.5 else read.nonce, other.run)


def _invent(events: list[Event], read: Read, chance: random.Random) -> list[Event]:
    nonce, run = chance.choice([("made up", read.run), (read.nonce, "made up"), (None, None)])
    return _answer_with(events, read, nonce, run)


def _apply_late(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    def is_open(event: Event) -> bool:
        return isinstance(event, Read) and event.request_id == read.request_id and event.status == "open"

    ended = replace(read, time=0.0, status="failed", document="failed", nonce=None, run=None)
    return [*(e for e in events if not is_open(e)), ended]


def _apply_twice(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    return [*events, Recorded(request_id=read.request_id, kind="accepted", run=f"{read.run}-other")]


def _apply_conflict(events: list[Event], read: Read, chance: random.Random) -> list[Event]:
    def lowered(event: Event) -> Event:
        if isinstance(event, Recorded) and event.request_id == read.request_id and event.kind == "accepted":
            return replace(event, kind=chance.choice(["late", "conflict"]))
        return event

    return [lowered(event) for event in events]


PLANTS: Sequence[tuple[Kind, Plant]] = (
    (Kind.LOST, _lose),
    (Kind.CHANGED, _reopen),
    (Kind.CHANGED, _change),
    (Kind.FORKED, _fork),
    (Kind.DOUBLED, _double_alive),
    (Kind.DOUBLED, _double_stored),
    (Kind.DOUBLED, _double_elsewhere),
    (Kind.DOUBLED, _double_once_only),
    (Kind.EXCESS, _exceed),
    (Kind.EXCESS, _exceed_starts),
    (Kind.SWAPPED, _swap),
    (Kind.INVENTED, _invent),
    (Kind.LATE_APPLIED, _apply_late),
    (Kind.LATE_APPLIED, _apply_twice),
    (Kind.LATE_APPLIED, _apply_conflict),
)


def planted(number: int) -> tuple[Kind, list[Event]]:
    """The history with that number: clean but for one violation, and which one."""
    chance = random.Random(number)
    kind, plant = PLANTS[number % len(PLANTS)]
    stories = [Story.ANSWERED, Story.ANSWERED, *chance.choices(list(Story), k=12)]
    events = told(stories, seed=number)
    victim = chance.choice(["request1", "request2"])
    reads = [e for e in events if isinstance(e, Read) and e.request_id == victim]
    return kind, plant(events, max(reads, key=lambda read: read.time), chance)
