"""Work that runs beside a block and ends with it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager


@asynccontextmanager
async def alongside(*works: Coroutine[object, object, object]) -> AsyncIterator[None]:
    """Run `works` while the block runs, then cancel them and wait for their end.

    An error of the block comes out as it is. An error of a work cancels the block and comes out.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
    except BaseExceptionGroup as errors:
        if len(errors.exceptions) == 1:
            raise errors.exceptions[0] from None
        raise
