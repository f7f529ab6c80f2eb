import pytest

from dispatcher.cli.streamed import PIECE, consumed

COUNT = 3 * PIECE + 1


class Source:
    """Counts what was taken from it."""

    def __init__(self):
        self.taken = 0

    async def items(self):
        for at in range(COUNT):
            self.taken += 1
            yield at


async def test_everything_arrives_in_order_and_little_of_it_waits():
    source, waiting = Source(), []

    def consume(items):
        found = []
        for item in items:
            found.append(item)
            waiting.append(source.taken - len(found))
        return found

    assert await consumed(source.items(), consume) == list(range(COUNT))
    assert max(waiting) < PIECE


async def test_a_consumer_may_stop_early():
    source = Source()

    assert await consumed(source.items(), next) == 0
    assert source.taken == PIECE


async def test_errors_of_either_side_are_raised():
    async def broken():
        yield 1
        raise LookupError("source")

    with pytest.raises(LookupError, match="source"):
        await consumed(broken(), list)
    with pytest.raises(ZeroDivisionError):
        await consumed(Source().items(), lambda items: [1 // item for item in items])
