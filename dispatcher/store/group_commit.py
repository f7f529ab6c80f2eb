"""Group commit: the writes of many callers in one transaction, each answered after its commit.

What arrives while a group is being committed forms the next group, so groups grow by themselves
with the load and a lone write waits for nobody. Knows nothing of SQL: `apply` is the transaction.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from dispatcher.backoff import doubled
from dispatcher.clock import Clock
from dispatcher.errors import OverloadedError, UnavailableError
from dispatcher.store.failure import ConflictError

Write = TypeVar("Write")
Answer = TypeVar("Answer")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """Bounds of a group commit.

    `capacity` counts writes waiting or under way; `largest` is the most in one transaction.
    After a group of several, the next waits `window_s` for company (2 ms made groups twice as
    large and PostgreSQL a fifth cheaper). While a group has been under way for `stuck_s`, what can
    be refused is refused at once: it would only wait for its error. A conflicting transaction is
    tried `tries` times, the pause between doubling from `pause_s`.
    """

    capacity: int = 4096
    largest: int = 256
    window_s: float = 0.002
    stuck_s: float = 3.0
    tries: int = 6
    pause_s: float = 0.005


class _Pending(NamedTuple, Generic[Write, Answer]):
    write: Write
    answer: "asyncio.Future[Answer]"


class GroupCommit(Generic[Write, Answer]):
    """One queue of writes and the one task that commits them in order of arrival.

    `apply` runs a group as one transaction and returns one answer per write; it is called again
    with the same writes after a conflict, and with halves of them after any other error, until
    the write at fault fails alone.
    """

    def __init__(
        self,
        apply: Callable[[Sequence[Write]], Awaitable[Sequence[Answer]]],
        *,
        rules: GroupRules,
        clock: Clock,
    ) -> None:
        self._apply = apply
        self._rules = rules
        self._clock = clock
        self._room = asyncio.Semaphore(rules.capacity)
        self._queue: deque[_Pending[Write, Answer]] = deque()
        self._arrived = asyncio.Event()
        self._finished = asyncio.Event()
        self._closed = True
        self._begun_at: float | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Commit groups inside the block; on leaving, commit what is queued and refuse what comes later."""
        async with asyncio.TaskGroup() as group:
            self._closed = False
            group.create_task(self._run())
            try:
                yield
            finally:
                self._closed = True
                self._arrived.set()
                await self._finished.wait()

    async def offer(self, write: Write) -> Answer:
        """The answer once committed.

        Raises at once, instead of waiting, OverloadedError where the queue is full and
        UnavailableError where the group under way is stuck.
        """
        if self._room.locked():
            raise OverloadedError("too many writes are waiting for the database")
        if self._begun_at is not None and self._clock.monotonic() - self._begun_at >= self._rules.stuck_s:
            raise UnavailableError("the database has not answered for a while")
        return await self.put(write)

    async def put(self, write: Write) -> Answer:
        """The answer once committed; waits for room where the queue is full.

        Raises UnavailableError when the database can't be reached or this is closing. A caller
        cancelled before its group began has written nothing; later, its write may still happen.
        """
        async with self._room:
            if self._closed:
                raise UnavailableError("the ledger is closed")
            answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            self._queue.append(_Pending(write, answer))
            self._arrived.set()
            return await answer

    async def _run(self) -> None:
        group: list[_Pending[Write, Answer]] = []
        try:
            while self._queue or not self._closed:
                await self._arrived.wait()
                if len(group) > 1 and not self._closed:
                    await self._clock.sleep(self._rules.window_s)
                group = self._next_group()
                self._begun_at = self._clock.monotonic()
                await self._commit(group)
                self._begun_at = None
        finally:
            # Only a cancelled or broken loop leaves anybody unanswered here.
            self._closed = True
            _fail([*group, *self._queue], UnavailableError("the ledger was closed before the write was done"))
            self._finished.set()

    def _next_group(self) -> list[_Pending[Write, Answer]]:
        group: list[_Pending[Write, Answer]] = []
        while self._queue and len(group) < self._rules.largest:
            pending = self._queue.popleft()
            if not pending.answer.done():
                group.append(pending)
        if not self._queue:
            self._arrived.clear()
        return group

    async def _commit(self, group: Sequence[_Pending[Write, Answer]]) -> None:
        if not group:
            return
        try:
            answers = await self._apply_through_conflicts([pending.write for pending in group])
        except UnavailableError as error:
            _fail(group, error)
            return
        except Exception as error:  # noqa: BLE001  (the loop's supervisor: one bad write must not stop the others)
            if len(group) == 1:
                logger.warning("ledger.write_refused", extra={"error": type(error).__name__})
                _fail(group, error)
                return
        else:
            _answer(group, answers)
            return
        middle = len(group) // 2
        await self._commit(group[:middle])
        await self._commit(group[middle:])

    async def _apply_through_conflicts(self, writes: Sequence[Write]) -> Sequence[Answer]:
        for tried in range(1, self._rules.tries):
            try:
                return await self._apply(writes)
            except ConflictError:
                logger.info("ledger.conflict", extra={"writes": len(writes), "tried": tried})
                await self._clock.sleep(doubled(self._rules.pause_s, tried))
        return await self._apply(writes)


def _answer(group: Sequence[_Pending[Write, Answer]], answers: Sequence[Answer]) -> None:
    for pending, answer in zip(group, answers, strict=True):
        if not pending.answer.done():
            pending.answer.set_result(answer)


def _fail(group: Sequence[_Pending[Write, Answer]], error: Exception) -> None:
    for pending in group:
        if not pending.answer.done():
            pending.answer.set_exception(error)
