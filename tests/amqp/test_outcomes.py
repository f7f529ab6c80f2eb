import inspect
from types import ModuleType

import aio_pika.exceptions
import aiormq.exceptions
import pamqp.exceptions
import pytest

from dispatcher.amqp.outcomes import LIBRARY_ERRORS, delivery_error, named_errors, outcome_of
from dispatcher.errors import OutcomeUnknownError, RefusedError, UnroutableError


def exceptions_of(module: ModuleType) -> set[type[BaseException]]:
    return {
        member
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, BaseException)
    }


ALL = sorted(
    exceptions_of(aio_pika.exceptions) | exceptions_of(aiormq.exceptions) | exceptions_of(pamqp.exceptions),
    key=lambda error: (error.__module__, error.__qualname__),
)


@pytest.mark.parametrize("error", ALL, ids=lambda error: f"{error.__module__}.{error.__qualname__}")
def test_every_exception_of_the_library_has_an_outcome_and_is_caught(error: type[BaseException]):
    assert outcome_of(error) is not None
    assert issubclass(error, LIBRARY_ERRORS)


def test_only_a_returned_and_a_refused_message_surely_did_not_arrive():
    certain = {error.__name__: outcome_of(error) for error in ALL if outcome_of(error) != OutcomeUnknownError}

    assert certain == {"PublishError": UnroutableError, "DeliveryError": RefusedError}


def test_a_timeout_leaves_the_outcome_open():
    assert isinstance(delivery_error(TimeoutError(), "queue"), OutcomeUnknownError)


def test_an_exception_that_is_not_the_librarys_has_no_outcome():
    assert outcome_of(KeyError) is None


def test_the_librarys_bare_exception_gets_a_name():
    with pytest.raises(LIBRARY_ERRORS), named_errors():
        raise Exception  # noqa: TRY002 - as the library does


@pytest.mark.parametrize("kind", [KeyError, TimeoutError])
def test_an_error_with_a_name_keeps_it(kind: type[Exception]):
    with pytest.raises(kind), named_errors():
        raise kind
