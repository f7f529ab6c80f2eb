"""So many requests at a steady rate, and what they cost: one run of the open loop."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatcher.bench.child import Child
from dispatcher.bench.disk import fsync_ms
from dispatcher.bench.post import Target
from dispatcher.bench.process_time import cpu_ms, machine_busy_ms, resident_mb

SETTLE_S = 120.0
"""No request is open for longer: its deadline has passed by then."""
_PATIENCE_S = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """Who sends, to whom, over at most how many connections at once; more requests wait, and that counts."""

    sender: Child
    target: Target
    processes: Mapping[str, int]
    connections: int
    payload_kb: int

    async def offer(self, requests: int, rate: float) -> dict[str, Any]:
        """Send everything, wait for every answer and for the end of all that was accepted."""
        fsync = await asyncio.to_thread(fsync_ms)
        before = {name: cpu_ms(pid) for name, pid in self.processes.items()}
        busy = machine_busy_ms()
        seconds = requests / rate + SETTLE_S + _PATIENCE_S
        figures = await self.sender.ask(self._order(requests, rate), seconds)
        busy = machine_busy_ms() - busy
        used = {name: cpu_ms(pid) - before[name] for name, pid in self.processes.items()}
        # One that was killed and started again is another process: nothing is known of it.
        used = {name: ms for name, ms in used.items() if ms >= 0}
        memory = {name: resident_mb(self.processes[name]) for name in used}
        return {
            "requests": requests,
            "offered_rate": round(rate, 1),
            **figures,
            "foreign_cpus": round((busy - sum(used.values())) / (figures["seconds"] * 1000), 2),
            "cpu_ms": _per_request(used, requests),
            "resident_mb": memory,
            "fsync_ms": round(fsync, 3),
        }

    def _order(self, requests: int, rate: float) -> dict[str, object]:
        return {
            "do": "open",
            "url": self.target.url,
            "payload_kb": self.payload_kb,
            "requests": requests,
            "rate": rate,
            "connections": self.connections,
            "settle_s": SETTLE_S,
        }


def _per_request(used: Mapping[str, float], requests: int) -> dict[str, float]:
    each = {name: round(ms / requests, 3) for name, ms in used.items()}
    return {**each, "sum": round(sum(each.values()), 3)}
