"""How often the database is asked for secret and time."""

import pytest

from dispatcher.errors import UnavailableError
from dispatcher.registry.direct import TicketRules
from dispatcher.registry.direct_book import REREAD_S, DirectBook, StoredSecret


class Secrets:
    """Keeps the first secret it is offered; its time is the given one."""

    def __init__(self) -> None:
        self.kept: bytes | None = None
        self.now_ms = 5_000_000
        self.asked = 0
        self.failure: UnavailableError | None = None

    async def secret(self, fresh: bytes) -> StoredSecret:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        self.kept = self.kept or fresh
        return StoredSecret(secret=self.kept, now_ms=self.now_ms)


@pytest.fixture
def book(secrets, clock) -> DirectBook:
    return DirectBook(secrets, TicketRules(), clock)


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


async def test_time_goes_on_without_asking(book, secrets, clock):
    first = await book.now()
    clock.now += REREAD_S - 1

    later = await book.now()

    assert (later.secret, later.now_ms, secrets.asked) == (first.secret, first.now_ms + 59_000, 1)


async def test_after_a_while_the_database_is_asked_again(book, secrets, clock):
    await book.now()
    clock.now += REREAD_S + 1
    secrets.kept, secrets.now_ms = b"another", 9_000_000

    moment = await book.now()

    assert (moment.secret, moment.now_ms) == (b"another", 9_000_000)


async def test_a_secret_is_long_and_random(clock):
    made = [await DirectBook(Secrets(), TicketRules(), clock).now() for _ in range(2)]

    assert len(made[0].secret) == 32
    assert made[0].secret != made[1].secret


async def test_without_its_database_it_says_so(book, secrets):
    secrets.failure = UnavailableError("gone")

    with pytest.raises(UnavailableError):
        await book.now()
