"""Every error the dispatcher raises on purpose.

    DispatcherError
    ├── RequestError        what the caller sent can't be used        (HTTP 4xx)
    ├── RegistrationError   what an agent sent can't be registered    (HTTP 4xx)
    ├── DeliveryError       a task was not handed over
    │   ├── UnroutableError     no queue for that agent; surely not delivered
    │   ├── RefusedError        queue full or broker refused; surely not delivered
    │   ├── TooLargeError       frame over the size limit; never published
    │   └── OutcomeUnknownError timed out or connection lost: may have been delivered
    │       └── NotSentError        the transport was not there; surely nothing was written
    ├── OverloadedError     a bound was hit before anything was accepted (HTTP 503 + Retry-After)
    ├── UnavailableError    a part we depend on is not there          (HTTP 503)
    └── ConfigurationError  the process can't start as configured

Each carries a stable `code`; the message names the thing and never repeats the caller's text.
"""

from typing import ClassVar


class DispatcherError(Exception):
    """Root of the tree. `code` is stable across releases and safe to show."""

    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = code or self.code


class RequestError(DispatcherError):
    """The caller's input can't be used; sending it again unchanged can't help."""

    code = "invalid_request"


class RegistrationError(DispatcherError):
    """An agent's declaration, lease or instance was refused; `error_code` says which rule."""

    code = "registration_refused"

    def __init__(self, message: str, *, code: str | None = None, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message, code=code)
        self.fields = fields


class DeliveryError(DispatcherError):
    """A task frame was not (or not surely) handed over."""

    code = "delivery_failed"


class UnroutableError(DeliveryError):
    """No queue takes frames for that agent; the frame surely did not arrive."""

    code = "unroutable"


class RefusedError(DeliveryError):
    """The queue is full or the broker said no; the frame surely did not arrive."""

    code = "refused"


class TooLargeError(DeliveryError):
    """The frame exceeds the size limit and was not published."""

    code = "too_large"


class OutcomeUnknownError(DeliveryError):
    """No confirmation came; the frame may or may not arrive. Publishing it again is safe (I2)."""

    code = "outcome_unknown"


class NotSentError(OutcomeUnknownError):
    """The transport did not come up in time: nothing was written, and nothing is known of the receiver.

    Whoever treats it like its parent is merely more careful than needed.
    """

    code = "not_sent"


class OverloadedError(DispatcherError):
    """A bound was hit and nothing was accepted; try again after `retry_after_s` seconds."""

    code = "overloaded"

    def __init__(self, message: str, *, retry_after_s: int = 1, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after_s = retry_after_s


class UnavailableError(DispatcherError):
    """The database, the broker or the encoder can't be reached right now."""

    code = "unavailable"


class ConfigurationError(DispatcherError):
    """The process can't start like this; the message is one sentence that says what to change."""

    code = "configuration"


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error inside a group of a failed task group, however deep it is nested."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
