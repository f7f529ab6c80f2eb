"""Clean histories made of small stories; with `planted` they test the checker."""

import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from tests.faults.history import (
    Accepted,
    Died,
    Ended,
    Event,
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
