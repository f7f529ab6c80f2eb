"""Offers results to the dispatcher and decides what becomes of one whose handling failed.

A handler that raises says nothing about the result: what failed may work a second later, so the
result is given back. What always fails must not come back for ever, so it is given up after some
tries. REQUEUE as an answer is no failure: an outage may last, and that result waits it out.
"""

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from dispatcher.clock import Clock
from dispatcher.protocol.link import Settlement

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRules:
    """How results that were not taken are offered again.

    One goes back after `requeue_pause_s`, so that it does not spin, and is dead when its handling
    failed `tries` times. Failures are counted per process and by content, for the latest
    `remembered` results that failed; one that is forgotten starts anew.
    """

    requeue_pause_s: float = 1.0
    tries: int = 20
    remembered: int = 1_000


DEFAULT_RESULT_RULES = ResultRules()


class ResultIntake:
    """One process's way from a result frame to its settlement."""

    def __init__(
        self, on_result: Callable[[bytes], Awaitable[Settlement]], rules: ResultRules, clock: Clock
    ) -> None:
        self._on_result = on_result
        self._rules = rules
        self._clock = clock
        self._failures: OrderedDict[bytes, int] = OrderedDict()

    async def offer(self, frame: bytes) -> Settlement:
        """What is to become of the frame; REQUEUE comes after the pause."""
        try:
            settlement = await self._on_result(frame)
        except Exception:
            failures = self._count_failure(_digest(frame))
            log.exception("channel.result_failed", extra={"failures": failures})
            settlement = Settlement.DEAD if failures >= self._rules.tries else Settlement.REQUEUE
        if self._failures and settlement is not Settlement.REQUEUE:
            self._failures.pop(_digest(frame), None)
        if settlement is Settlement.REQUEUE:
            await self._clock.sleep(self._rules.requeue_pause_s)
        return settlement

    def _count_failure(self, digest: bytes) -> int:
        """How often this result failed, this time included."""
        failures = self._failures.pop(digest, 0) + 1
        self._failures[digest] = failures
        if len(self._failures) > self._rules.remembered:
            self._failures.popitem(last=False)
        return failures


def _digest(frame: bytes) -> bytes:
    return hashlib.sha256(frame).digest()
