"""What people wrote and what opens doors is in no error of the store, whatever the database says."""

import traceback
from collections.abc import Callable

import pytest

from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import RequestState
from dispatcher.errors import DispatcherError
from dispatcher.records import replace
from dispatcher.store.ledger import SqlLedger
from tests.conformance.store.ledger_requests import offer_of, replica

MESSAGE, TOKEN = "where is my parcel, says somebody", "token-that-opens-doors"


def without_digest(state: RequestState) -> RequestState:
    return replace(state, request=replace(state.request, body_digest=None))  # type: ignore[arg-type]


def without_a_time(state: RequestState) -> RequestState:
    return replace(state, attempts=(replace(state.attempts[0], not_before_ms=None),))  # type: ignore[arg-type]


def as_one_twice(state: RequestState) -> RequestState:
    return replace(state, attempts=state.attempts * 2)


async def told_by_refusal(ledger: SqlLedger, spoil: Callable[[RequestState], RequestState]) -> str:
    """All that a log would show of an accept that the database refuses."""
    offer = offer_of()

    def build(now: int) -> Step:
        state = offer.build(now).state
        request = replace(state.request, message=MESSAGE)
        attempt = replace(state.attempts[0], token=TOKEN)
        return Step(state=spoil(replace(state, request=request, attempts=(attempt,))))

    with pytest.raises(DispatcherError, match="the database refused a statement") as refused:
        await ledger.accept(replace(offer, build=build))
    return "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("spoil", [without_digest, without_a_time, as_one_twice])
async def test_a_refused_insert_repeats_neither_message_nor_token(
    ledger: SqlLedger, spoil: Callable[[RequestState], RequestState]
):
    told = await told_by_refusal(ledger, spoil)

    assert MESSAGE not in told
    assert TOKEN not in told


async def test_a_value_that_is_no_number_is_not_quoted(shared_postgres: str):
    def with_a_word(state: RequestState) -> RequestState:
        return replace(state, attempts=(replace(state.attempts[0], number=TOKEN),))  # type: ignore[arg-type]

    async with replica(shared_postgres) as ledger:
        told = await told_by_refusal(ledger, with_a_word)

    assert TOKEN not in told
