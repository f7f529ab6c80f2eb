"""How much may be tried again, so that retries never become the storm (requirement D4, I7).

Two bounds, both kept by delay: a token bucket per caller and agent (one token each 300 ms), and at
most 20 % of the first attempts plus a floor in any 10 s of this replica (Envoy and Linkerd bound it so).
"""

from bisect import bisect_right, insort
from collections import Counter, OrderedDict
from dataclasses import dataclass

from dispatcher.clock import Clock
from dispatcher.identifiers import AgentId, CallerId


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRules:
    """`burst` tokens fill a bucket at one per `every_s` seconds.

    In any `window_s` seconds at most `floor` + `share` × first attempts are made again. Of more
    than `buckets` pairs the one unused longest is forgotten, and starts full again.
    """

    every_s: float = 0.3
    burst: int = 10
    share: float = 0.2
    floor: int = 20
    window_s: float = 10.0
    buckets: int = 10_000


class RetryBudget:
    """Counts in memory, for one replica; what a repeated transaction counted twice only slows retries."""

    def __init__(self, rules: RetryRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        self._firsts: Counter[int] = Counter()
        """First attempts by second."""
        self._again: list[float] = []
        """When further attempts were made or are reserved, in order."""
        self._full_at: OrderedDict[tuple[CallerId, AgentId], float] = OrderedDict()

    def count_first(self) -> None:
        """A task got its first attempt; it earns its share of a retry."""
        second = int(self._clock.monotonic())
        if second not in self._firsts:
            self._forget()
        self._firsts[second] += 1

    def delay_ms(self, caller: CallerId, agent_id: AgentId, within_ms: int) -> int | None:
        """Reserve one more attempt of this caller at this agent: the milliseconds it has to wait.

        None, with nothing reserved, where it would have to wait for `within_ms` or longer.
        """
        self._forget()
        now = self._clock.monotonic()
        full_at = max(self._full_at.get((caller, agent_id), now), now) + self._rules.every_s
        at = self._window_allows(max(now, full_at - self._rules.burst * self._rules.every_s))
        if (at - now) * 1000 >= within_ms:
            return None
        self._remember(caller, agent_id, full_at)
        insort(self._again, at)
        return round((at - now) * 1000)

    def _remember(self, caller: CallerId, agent_id: AgentId, full_at: float) -> None:
        """When the bucket will be full again: all there is to know of it (generic cell rate algorithm)."""
        self._full_at[caller, agent_id] = full_at
        self._full_at.move_to_end((caller, agent_id))
        if len(self._full_at) > self._rules.buckets:
            self._full_at.popitem(last=False)

    def _window_allows(self, at: float) -> float:
        """The earliest time from `at` on that no full window holds."""
        allowed = max(1, self._rules.floor + int(self._rules.share * self._firsts.total()))
        if len(self._again) < allowed:
            return at
        return max(at, self._again[-allowed] + self._rules.window_s)

    def _forget(self) -> None:
        oldest = self._clock.monotonic() - self._rules.window_s
        del self._again[: bisect_right(self._again, oldest)]
        for second in [s for s in self._firsts if s < int(oldest)]:
            del self._firsts[second]
