"""What an error of the AMQP library means for the frame that was being published.

The only place that knows the library's exception classes; a test walks all of them and fails
on one that is not covered.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from aio_pika.exceptions import AMQPError, PublishError
from aio_pika.exceptions import DeliveryError as NotDelivered
from pamqp.exceptions import PAMQPException

from dispatcher.errors import DeliveryError, OutcomeUnknownError, RefusedError, UnroutableError

LIBRARY_ERRORS = (AMQPError, PAMQPException, OSError, RuntimeError, StopAsyncIteration)
"""All that an AMQP call may raise; `TimeoutError` is an OSError, a closed channel a RuntimeError.

A peer that accepts and closes at once makes the library raise StopAsyncIteration.
"""

_OUTCOMES: Mapping[type[BaseException], type[DeliveryError]] = MappingProxyType(
    {
        PublishError: UnroutableError,
        NotDelivered: RefusedError,
        AMQPError: OutcomeUnknownError,
        PAMQPException: OutcomeUnknownError,
        OSError: OutcomeUnknownError,
        RuntimeError: OutcomeUnknownError,
        StopAsyncIteration: OutcomeUnknownError,
    }
)
"""Returned by the broker, refused by it (nack), or anything that leaves the outcome open."""


@contextmanager
def named_errors() -> Iterator[None]:
    """Raise ConnectionError for the bare `Exception` of the library.

    It ends calls with that whose connection was closed in good order: there was no error to give them.
    """
    try:
        yield
    except Exception as error:
        if type(error) is Exception:
            raise ConnectionError("the connection was closed") from error
        raise


def outcome_of(error: type[BaseException]) -> type[DeliveryError] | None:
    """The delivery error for a library exception class, by its nearest ancestor; None if not covered."""
    return next((_OUTCOMES[ancestor] for ancestor in error.__mro__ if ancestor in _OUTCOMES), None)


def delivery_error(error: BaseException, destination: str) -> DeliveryError:
    """The delivery error for an exception that a publish to `destination` ended with."""
    kind = outcome_of(type(error)) or OutcomeUnknownError
    return kind(f"publishing to {destination}: {type(error).__name__}")
