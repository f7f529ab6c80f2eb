"""One agent's tasks in memory, with the delivery rules of a broker's queue.

Tasks go out in order of arrival, to the consumers in turn, to each at most `prefetch` that are
not settled. What a consumer leaves behind goes back to the front, in its order. A task whose time
ran out while it waited is dead and never goes out.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dispatcher.channel.channel import DeadReason
from dispatcher.clock import Clock
from dispatcher.protocol.link import Delivery, Settlement
from dispatcher.protocol.topology import DELIVERY_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRules:
    """At `max_length` waiting tasks the next is refused.

    A task that was given back more than `delivery_limit` times is dead.
    """

    max_length: int = 10_000
    delivery_limit: int = DELIVERY_LIMIT


DEFAULT_QUEUE_RULES = QueueRules()


class _Entry:
    """A task in the queue: since when it waits, until when it may go out, how often it was given back."""

    __slots__ = ("body", "expires_at", "returns", "since")

    def __init__(self, body: bytes, since: float, expires_at: float) -> None:
        self.body = body
        self.since = since
        self.expires_at = expires_at
        self.returns = 0


class _QueuedDelivery:
    """One handing over of an entry; implements `protocol.link.Delivery`."""

    __slots__ = ("_consumer", "_queue", "entry")

    def __init__(self, queue: "TaskQueue", consumer: "TaskConsumer", entry: _Entry) -> None:
        self._queue = queue
        self._consumer = consumer
        self.entry = entry

    @property
    def body(self) -> bytes:
        return self.entry.body

    @property
    def since(self) -> float:
        return self.entry.since

    @property
    def is_lost(self) -> bool:
        return self not in self._consumer.unsettled

    async def settle(self, settlement: Settlement) -> None:
        self._queue.settle(self._consumer, self, settlement)


class TaskConsumer:
    """One consumer's deliveries, as an endless iterator."""

    def __init__(self, prefetch: int) -> None:
        self._prefetch = prefetch
        self._arrived: asyncio.Queue[Delivery] = asyncio.Queue()
        self.unsettled: dict[_QueuedDelivery, None] = {}

    @property
    def has_room(self) -> bool:
        """Whether it may be handed another task."""
        return len(self.unsettled) < self._prefetch

    def receive(self, delivery: _QueuedDelivery) -> None:
        """Hold the task until it is settled."""
        self.unsettled[delivery] = None
        self._arrived.put_nowait(delivery)

    def __aiter__(self) -> "TaskConsumer":
        """The consumer itself."""
        return self

    async def __anext__(self) -> Delivery:
        """The next task, as soon as there is one."""
        return await self._arrived.get()


class TaskQueue:
    """A bounded queue; `bury` takes the bodies of dead tasks and why they are dead."""

    def __init__(self, rules: QueueRules, bury: Callable[[bytes, DeadReason], None], clock: Clock) -> None:
        self._rules = rules
        self._bury = bury
        self._clock = clock
        self._waiting: deque[_Entry] = deque()
        self._consumers: deque[TaskConsumer] = deque()

    def put(self, body: bytes, expires_at: float) -> bool:
        """Add a task that may go out before `expires_at` (monotonic); False when the queue is full."""
        if len(self._waiting) >= self._rules.max_length:
            self.bury_expired()
        if len(self._waiting) >= self._rules.max_length:
            return False
        self._waiting.append(_Entry(body, self._clock.monotonic(), expires_at))
        self._hand_out()
        return True

    def bury_expired(self) -> None:
        """Move what waited too long to the dead letters; it would not go out anyway."""
        now, entries = self._clock.monotonic(), tuple(self._waiting)
        self._waiting.clear()
        for entry in entries:
            if entry.expires_at <= now:
                self._bury(entry.body, DeadReason.EXPIRED)
            else:
                self._waiting.append(entry)

    @contextmanager
    def consumed(self, prefetch: int) -> Iterator[TaskConsumer]:
        """Deliver to a new consumer until the block ends; then its unsettled tasks go to others."""
        consumer = TaskConsumer(prefetch)
        self._consumers.append(consumer)
        self._hand_out()
        try:
            yield consumer
        finally:
            self._consumers.remove(consumer)
            for delivery in reversed(consumer.unsettled):
                self._give_back(delivery.entry)
            consumer.unsettled.clear()
            self._hand_out()

    def settle(self, consumer: TaskConsumer, delivery: _QueuedDelivery, settlement: Settlement) -> None:
        """Carry out the settlement; nothing when it was settled before or its consumer left."""
        if delivery not in consumer.unsettled:
            return
        del consumer.unsettled[delivery]
        match settlement:
            case Settlement.ACK:
                pass
            case Settlement.REQUEUE:
                self._give_back(delivery.entry)
            case Settlement.DEAD:
                self._bury(delivery.body, DeadReason.REJECTED)
        self._hand_out()

    def _give_back(self, entry: _Entry) -> None:
        entry.returns += 1
        if entry.returns > self._rules.delivery_limit:
            self._bury(entry.body, DeadReason.DELIVERY_LIMIT)
        else:
            self._waiting.appendleft(entry)

    def _hand_out(self) -> None:
        now = self._clock.monotonic()
        while self._waiting and (consumer := self._next_consumer()):
            entry = self._waiting.popleft()
            if entry.expires_at <= now:
                self._bury(entry.body, DeadReason.EXPIRED)
            else:
                consumer.receive(_QueuedDelivery(self, consumer, entry))

    def _next_consumer(self) -> TaskConsumer | None:
        for _ in range(len(self._consumers)):
            self._consumers.rotate(-1)
            if self._consumers[-1].has_room:
                return self._consumers[-1]
        return None
