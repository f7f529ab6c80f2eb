"""Ten times more requests than can be done, for a minute: the excess is refused at once (R10)."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles

from dispatcher.clock import SystemClock
from tests.faults.echo import ONCE
from tests.faults.history import Refused
from tests.faults.load import Load
from tests.faults.process_memory import resident_mb
from tests.faults.row import OwnRow
from tests.faults.solo import Solo, conclude, open_solo
from tests.faults.trial import Report

SECONDS = 60.0
WORK_S, AT_ONCE = 0.4, 4
CAPACITY = AT_ONCE / WORK_S
TIMES = 10
BACKLOG = 60
SETTINGS = {"DISPATCHER_DELIVERY__MAX_BACKLOG": str(BACKLOG)}
PAUSE_S = 0.05
REFUSED_WITHIN_S = 0.1
GROWTH_MB = 10.0
IN_FLIGHT = 400


@dataclass(slots=True, kw_only=True)
class Flood:
    """What was offered, how long refusals took, and what the process held meanwhile."""

    load: Load
    clock: SystemClock = field(default_factory=SystemClock)
    offered: int = 0
    refusals_s: list[float] = field(default_factory=list)
    bare_s: list[float] = field(default_factory=list)
    """What the same process took meanwhile for a request that asks nothing of it."""
    memory_mb: list[float] = field(default_factory=list)

    async def run(self, pid: int, seconds: float) -> None:
        """Post at ten times the capacity, whatever comes of it."""
        began = self.clock.monotonic()
        places = asyncio.Semaphore(IN_FLIGHT)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look(began + seconds))
            while (now := self.clock.monotonic() - began) < seconds:
                while self.offered < now * CAPACITY * TIMES:
                    self.offered += 1
                    await places.acquire()
                    group.create_task(self._post_at(places))
                self.memory_mb.append(resident_mb(pid))
                await self.clock.sleep(PAUSE_S)

    async def _look(self, until: float) -> None:
        """One client among the many, which does one thing at a time and takes the time."""
        while (began := self.clock.monotonic()) < until:
            await self.load.show("/healthz")
            self.bare_s.append(self.clock.monotonic() - began)
            began = self.clock.monotonic()
            if not await self._post():
                self.refusals_s.append(self.clock.monotonic() - began)
            await self.clock.sleep(PAUSE_S)

    async def _post_at(self, places: asyncio.Semaphore) -> None:
        await self._post()
        places.release()

    async def _post(self) -> bool:
        order = self.load.order(capability=ONCE, work_s=WORK_S)
        await self.load.post(order, tries=1)
        return order.request_id is not None


async def flooded(folder: Path, seconds: float = SECONDS, twentieths: int = 19) -> Report:
    """The row for so many seconds; so many twentieths of the refusals have to be quick."""
    async with open_solo(folder, settings=SETTINGS, agents=("tests.faults.inside:slow",)) as solo:
        await solo.start()
        await _warm(solo)
        flood = Flood(load=solo.load)
        await flood.run(solo.running.pid, seconds)
        solo.heal()
        refused = Counter(f"refused: {e.code}" for e in solo.load.events if isinstance(e, Refused))
        solo.load.orders = [order for order in solo.load.orders if order.request_id]
        report = await conclude(solo, _problems(flood, refused, seconds, twentieths))
        return replace(report, endings={**report.endings, **refused})


async def _warm(solo: Solo) -> None:
    await solo.load.accepted(20)
    await solo.load.drain()


def _problems(flood: Flood, refused: Counter[str], seconds: float, twentieths: int) -> Sequence[str]:
    """What does not hold.

    A machine that is busy with others may offer half of the flood, and the time that it takes for
    any request does not count as time that a refusal took.
    """
    refusal_s, bare_s = (quantiles(each, n=20)[twentieths - 1] for each in (flood.refusals_s, flood.bare_s))
    late_s = refusal_s - bare_s
    quarter = len(flood.memory_mb) // 4
    grown = median(flood.memory_mb[-quarter:]) - median(flood.memory_mb[quarter : 2 * quarter])
    checks = {
        f"only {flood.offered} requests were offered": flood.offered < CAPACITY * TIMES * seconds / 2,
        f"refused were {dict(refused)}": set(refused) != {"refused: backlog_full"},
        f"refusals took {late_s:.3f} s longer than a request for nothing": late_s > REFUSED_WITHIN_S,
        f"the process grew by {grown:.1f} MB": grown > GROWTH_MB,
    }
    return [problem for problem, is_so in checks.items() if is_so]


ROWS = (OwnRow(numbers="flood", title="ten times too much for a minute", run=flooded, alone=True),)
