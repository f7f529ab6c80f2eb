"""Who holds a delivery can tell when holding it has become pointless."""

from dispatcher.channel.task_queue import DEFAULT_QUEUE_RULES, TaskQueue
from dispatcher.clock import SystemClock
from dispatcher.protocol.link import Settlement


async def test_a_delivery_is_lost_once_its_consumer_has_left():
    dead: list[bytes] = []
    clock = SystemClock()
    queue = TaskQueue(DEFAULT_QUEUE_RULES, lambda body, _reason: dead.append(body), clock)
    queue.put(b"task", clock.monotonic() + 60)
    with queue.consumed(1) as consumer:
        delivery = await anext(consumer)
        held = delivery.is_lost

    assert (held, delivery.is_lost) == (False, True)
    await delivery.settle(Settlement.DEAD)
    assert dead == []
