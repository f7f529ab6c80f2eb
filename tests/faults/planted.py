"""Violations planted into clean histories: they test the checker."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.faults.history import (
    Accepted,
    Died,
    Event,
    Kind,
    Posted,
    Read,
    Recorded,
    Started,
)
from tests.faults.stories import Story, told

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


def _forge(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    def forged(event: Event) -> Event:
        if isinstance(event, Recorded) and event.request_id == read.request_id and event.kind == "accepted":
            return replace(event, run="forged")
        return event

    return [forged(event) for event in events]


def _run_unasked(events: list[Event], read: Read, _: random.Random) -> list[Event]:
    start = _start_of(events, read)
    other = replace(start, run="unasked", nonce="unasked", key="unasked", request_id="unasked")
    return [*events, other]


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
    (Kind.INVENTED, _forge),
    (Kind.INVENTED, _run_unasked),
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
