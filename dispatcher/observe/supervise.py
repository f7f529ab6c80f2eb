"""Keeps the loops that never end alive: a failed round is logged and the next one comes."""

import logging
from collections.abc import Awaitable, Callable

from dispatcher.clock import Clock
from dispatcher.errors import UnavailableError

logger = logging.getLogger(__name__)
PAUSE_S = 0.5
"""After a failed round, even in a loop that otherwise does not pause."""


async def every(clock: Clock, seconds: float, name: str, action: Callable[[], Awaitable[object]]) -> None:
    """Run `action` now and then again `seconds` after each round, until cancelled.

    A round that finds something unavailable is logged as `loop.waiting`, any other failure as
    `loop.failed` with its trace; neither ends the loop.
    """
    while True:
        pause_s = seconds
        try:
            await action()
        except UnavailableError as error:
            logger.warning("loop.waiting", extra={"loop": name, "reason": error.message})
            pause_s = max(seconds, PAUSE_S)
        except Exception:
            logger.exception("loop.failed", extra={"loop": name})
            pause_s = max(seconds, PAUSE_S)
        await clock.sleep(pause_s)
