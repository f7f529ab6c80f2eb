"""Rows that come from a database a page at a time, for rules that read an ordinary iterator."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

PIECE = 256
"""Items that change threads at a time."""


async def consumed(source: AsyncIterator[Item], consume: Callable[[Iterator[Item]], Result]) -> Result:
    """What `consume` makes of the items, in a thread; never more than `PIECE` of them wait for it.

    Raises what either of both raises.
    """
    loop = asyncio.get_running_loop()

    def pulled() -> Iterator[Item]:
        while piece := asyncio.run_coroutine_threadsafe(_piece(source), loop).result():
            yield from piece

    return await asyncio.to_thread(consume, pulled())


async def _piece(source: AsyncIterator[Item]) -> list[Item]:
    piece: list[Item] = []
    async for item in source:
        piece.append(item)
        if len(piece) == PIECE:
            break
    return piece
