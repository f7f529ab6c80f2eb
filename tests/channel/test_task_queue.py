import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from dispatcher.channel.channel import DeadReason
from dispatcher.channel.task_queue import QueueRules, TaskConsumer, TaskQueue
from dispatcher.clock import SystemClock
from dispatcher.protocol.link import Delivery, Settlement

LIMIT = 2
LENGTH = 5


class HeldClock(SystemClock):
    """Shows the time that the test says."""

    def __init__(self) -> None:
        self.time_s = 0.0

    def monotonic(self) -> float:
        return self.time_s


def burying(dead: list[bytes]) -> Callable[[bytes, DeadReason], None]:
    """Keeps the bodies of dead tasks."""
    return lambda body, _reason: dead.append(body)


class TaskQueueMachine(RuleBasedStateMachine):
    """Whatever happens, each accepted task is in exactly one place; none goes out too often or too late."""

    consumers = Bundle("consumers")

    def __init__(self) -> None:
        super().__init__()
        self.dead: list[bytes] = []
        self.done: list[bytes] = []
        self.accepted: list[bytes] = []
        self.clock = HeldClock()
        rules = QueueRules(max_length=LENGTH, delivery_limit=LIMIT)
        self.queue = TaskQueue(rules, burying(self.dead), self.clock)
        self.expiries: dict[bytes, float] = {}
        self.held: set[Delivery] = set()
        self.open: dict[TaskConsumer, ExitStack] = {}
        self.prefetch: dict[TaskConsumer, int] = {}

    @rule(target=consumers, prefetch=st.integers(1, 3))
    def join(self, prefetch: int) -> TaskConsumer:
        stack = ExitStack()
        consumer = stack.enter_context(self.queue.consumed(prefetch))
        self.open[consumer] = stack
        self.prefetch[consumer] = prefetch
        return consumer

    @rule(consumer=consumers)
    def leave(self, consumer: TaskConsumer) -> None:
        if consumer in self.open:
            self.open.pop(consumer).close()

    @rule()
    def let_time_pass(self) -> None:
        self.clock.time_s += 1

    @rule(budget=st.integers(1, 4))
    def put(self, budget: int) -> None:
        body = b"%d" % len(self.accepted)
        self.expiries[body] = self.clock.time_s + budget
        is_full = sum(entry.expires_at > self.clock.time_s for entry in self.queue._waiting) >= LENGTH
        if self.queue.put(body, self.expiries[body]):
            self.accepted.append(body)
            assert not is_full
        else:
            assert is_full

    @rule(consumer=consumers, settlement=st.sampled_from(Settlement), which=st.integers(0, 2))
    def settle(self, consumer: TaskConsumer, settlement: Settlement, which: int) -> None:
        held = list(consumer.unsettled)
        if which < len(held):
            if settlement is Settlement.ACK:
                self.done.append(held[which].body)
            asyncio.run(held[which].settle(settlement))

    @invariant()
    def every_task_is_in_one_place(self) -> None:
        waiting = [entry.body for entry in self.queue._waiting]
        held = [delivery.body for consumer in self.open for delivery in consumer.unsettled]
        assert Counter(waiting + held + self.done + self.dead) == Counter(self.accepted)

    @invariant()
    def nobody_holds_more_than_its_prefetch_and_nothing_waits_beside_room(self) -> None:
        assert all(len(consumer.unsettled) <= self.prefetch[consumer] for consumer in self.open)
        if self.queue._waiting:
            assert not any(consumer.has_room for consumer in self.open)

    @invariant()
    def nothing_goes_out_after_its_time(self) -> None:
        held: set[Delivery] = {delivery for consumer in self.open for delivery in consumer.unsettled}
        assert all(self.expiries[delivery.body] > self.clock.time_s for delivery in held - self.held)
        self.held = held

    @invariant()
    def nothing_alive_was_given_back_too_often(self) -> None:
        assert all(entry.returns <= LIMIT for entry in self.queue._waiting)


TestTaskQueue = TaskQueueMachine.TestCase


def test_consumers_get_tasks_in_turn():
    dead: list[bytes] = []
    queue = TaskQueue(QueueRules(), burying(dead), HeldClock())
    with queue.consumed(10) as first, queue.consumed(10) as second:
        for number in range(6):
            queue.put(b"%d" % number, expires_at=1)

        assert len(first.unsettled) == len(second.unsettled) == 3


def test_what_expired_behind_a_busy_consumer_is_dead_and_the_next_one_goes_out():
    dead: list[bytes] = []
    clock = HeldClock()
    queue = TaskQueue(QueueRules(), burying(dead), clock)
    with queue.consumed(1) as busy:
        for body, expires_at in ((b"first", 1), (b"late", 1), (b"next", 2)):
            queue.put(body, expires_at)
        clock.time_s = 1
        (first,) = busy.unsettled
        asyncio.run(first.settle(Settlement.ACK))

        assert [delivery.body for delivery in busy.unsettled] == [b"next"]
    assert dead == [b"late"]


def test_what_expired_takes_no_room():
    dead: list[bytes] = []
    clock = HeldClock()
    queue = TaskQueue(QueueRules(max_length=2), burying(dead), clock)
    queue.put(b"long", expires_at=9)
    queue.put(b"short", expires_at=1)
    assert not queue.put(b"refused", expires_at=9)

    clock.time_s = 1

    assert queue.put(b"next", expires_at=9)
    assert dead == [b"short"]
