"""SIGHUP: the settings are read again, and the encoder they name is taken up without a pause."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from dispatcher.assembly.running import Running
from dispatcher.errors import DispatcherError
from dispatcher.settings import Settings

logger = logging.getLogger(__name__)


@asynccontextmanager
async def reloading(running: Running, read: Callable[[], Settings]) -> AsyncIterator[None]:
    """Follow SIGHUP inside the block; all other settings need a new start."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGHUP, asked.set)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(_follow(running, read, asked))
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGHUP)
            following.cancel()


async def _follow(running: Running, read: Callable[[], Settings], asked: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        await _change(running, read, asked, group)


async def _change(
    running: Running, read: Callable[[], Settings], asked: asyncio.Event, group: asyncio.TaskGroup
) -> None:
    in_use, parts = running.settings.encoder, running.parts
    longest_s = running.settings.delivery.request_timeout_s
    while True:
        await asked.wait()
        asked.clear()
        try:
            wanted = (await asyncio.to_thread(read)).encoder
            if wanted == in_use:
                logger.info("encoder.unchanged", extra={"encoder": wanted.name})
                continue
            await parts.encoder.change(wanted, parts.calibrations.book.introduce)
            in_use = wanted
            group.create_task(parts.router.let_go(parts.clock, longest_s))
        except DispatcherError as error:
            # The old one goes on; the operator corrects the file and asks again.
            logger.warning("encoder.not_changed", extra={"why": error.message})
        except Exception:
            # Settings that nobody foresaw must not end what serves.
            logger.exception("encoder.not_changed")
