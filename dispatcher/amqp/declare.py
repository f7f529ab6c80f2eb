"""Exchanges and queues, declared with the same arguments by everyone who declares them.

Every queue is durable or exclusive and names its type: RabbitMQ 4 deprecates or refuses the rest.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from aio_pika.abc import AbstractChannel, AbstractQueue
from aio_pika.exceptions import ChannelPreconditionFailed

from dispatcher.amqp.connection import Connection
from dispatcher.amqp.outcomes import LIBRARY_ERRORS
from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.identifiers import new_id
from dispatcher.protocol.topology import QueueArguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A durable exchange. `owned` False: it must exist already, declared by its owner."""

    name: str
    kind: Literal["direct", "fanout"] = "direct"
    owned: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Where a queue gets its messages from."""

    exchange: Exchange
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A durable queue or, when `exclusive`, one that ends with its connection.

    An exclusive one gets a fresh ending to its name at every declaration: the broker may still
    hold the old one for a connection that it does not know to be dead.
    `arguments` None: it must exist already, declared by its owner. `dead_letters` is declared
    first, so that nothing can die before there is a place for it.
    """

    name: str
    arguments: QueueArguments | None = None
    exclusive: bool = False
    bindings: tuple[Binding, ...] = ()
    dead_letters: "Queue | None" = None


async def declare_exchanges(channel: AbstractChannel, exchanges: Sequence[Exchange]) -> None:
    """Create the owned ones and check that the others exist; a missing one closes the channel.

    Raises `ConfigurationError` for one that exists otherwise.
    """
    for exchange in exchanges:
        with _naming(f"exchange {exchange.name}"):
            await channel.declare_exchange(
                exchange.name, exchange.kind, durable=True, passive=not exchange.owned
            )


async def declare_queue(channel: AbstractChannel, queue: Queue) -> AbstractQueue:
    """Create the queue and its bindings; a queue of another owner is only looked up.

    Raises `ConfigurationError` where it, or its dead letters, exist with other arguments.
    """
    if queue.arguments is None:
        return await channel.get_queue(queue.name)
    if queue.dead_letters:
        await declare_queue(channel, queue.dead_letters)
    with _naming(f"queue {queue.name}"):
        declared = await channel.declare_queue(
            _unique(queue),
            durable=not queue.exclusive,
            exclusive=queue.exclusive,
            arguments=dict(queue.arguments),
        )
    await declare_exchanges(channel, [binding.exchange for binding in queue.bindings])
    for binding in queue.bindings:
        await declared.bind(binding.exchange.name, binding.key)
    return declared


@contextmanager
def _naming(thing: str) -> Iterator[None]:
    """Say what has to be deleted; arguments can't be changed in place."""
    try:
        yield
    except ChannelPreconditionFailed as error:
        raise ConfigurationError(
            f"{thing} exists with other arguments; delete it, or set another broker.prefix"
        ) from error


def _unique(queue: Queue) -> str:
    return f"{queue.name}.{new_id()}" if queue.exclusive else queue.name


async def declare_once(connection: Connection, queue: Queue) -> None:
    """Declare on a channel of its own, since a refusal closes the channel.

    Raises `ConfigurationError` like `declare_queue` and `UnavailableError`
    when the broker does not answer in time.
    """
    try:
        async with (
            asyncio.timeout(connection.rules.call_timeout_s),
            connection.channel(asyncio.Event(), confirms=False) as channel,
        ):
            await declare_queue(channel, queue)
    except LIBRARY_ERRORS as error:
        raise UnavailableError(f"the broker did not declare {queue.name}") from error
