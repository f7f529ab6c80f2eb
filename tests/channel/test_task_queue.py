import asyncio
from collections import Counter
from contextlib import ExitStack

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from dispatcher.channel.task_queue import QueueRules, TaskConsumer, TaskQueue
from dispatcher.protocol.link import Settlement

LIMIT = 2
LENGTH = 5


class TaskQueueMachine(RuleBasedStateMachine):
    """Whatever happens, each accepted task is in exactly one place and none is handed out too often."""

    consumers = Bundle("consumers")

    def __init__(self) -> None:
        super().__init__()
        self.dead: list[bytes] = []
        self.done: list[bytes] = []
        self.accepted: list[bytes] = []
        self.queue = TaskQueue(QueueRules(max_length=LENGTH, delivery_limit=LIMIT), self.dead.append)
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
    def put(self) -> None:
        body = b"%d" % len(self.accepted)
        is_full = len(self.queue._waiting) >= LENGTH
        if self.queue.put(body):
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
    def nothing_alive_was_given_back_too_often(self) -> None:
        assert all(entry.returns <= LIMIT for entry in self.queue._waiting)


TestTaskQueue = TaskQueueMachine.TestCase


def test_consumers_get_tasks_in_turn():
    dead: list[bytes] = []
    queue = TaskQueue(QueueRules(), dead.append)
    with queue.consumed(10) as first, queue.consumed(10) as second:
        for number in range(6):
            queue.put(b"%d" % number)

        assert len(first.unsettled) == len(second.unsettled) == 3
