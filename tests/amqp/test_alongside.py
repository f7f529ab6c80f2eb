import asyncio

import pytest

from dispatcher.amqp.alongside import alongside


class Beat:
    """A work that says when it began and when it ended."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.ended = asyncio.Event()

    async def run(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


async def failing(after: asyncio.Event) -> None:
    await after.wait()
    raise LookupError


async def test_works_run_beside_the_block_and_have_ended_after_it():
    beat = Beat()

    async with alongside(beat.run()):
        await beat.began.wait()
        assert not beat.ended.is_set()

    assert beat.ended.is_set()


async def test_an_error_of_the_block_comes_out_as_it_is():
    beat = Beat()

    async def body() -> None:
        async with alongside(beat.run()):
            await beat.began.wait()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await body()

    assert beat.ended.is_set()


async def test_an_error_of_a_work_ends_the_block_and_comes_out():
    beat = Beat()

    with pytest.raises(LookupError):
        async with alongside(beat.run(), failing(beat.began)):
            await asyncio.Event().wait()

    assert beat.ended.is_set()
