import json
import math
from collections.abc import Callable
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql, sqlite

from dispatcher.errors import DispatcherError
from dispatcher.store.column import Json, Number, Words, now_ms

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
).filter(lambda value: value is not None)


@given(JSON_VALUES)
def test_every_json_value_is_stored_as_its_document_without_nul(value: object):
    document = Json().process_bind_param(value, sqlite.dialect())

    assert document is not None
    assert json.loads(document) == value
    assert "\0" not in document


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "place",
    [
        lambda number: number,
        lambda number: {"at": number},
        lambda number: [None, (1.5, [number])],
        lambda number: MappingProxyType({"at": [{"deeper": number}]}),
        lambda number: {"long": 2**70, "at": number},
    ],
    ids=["bare", "named", "listed", "mapped", "beside an integer beyond 64 bits"],
)
def test_a_document_with_a_number_that_is_not_finite_is_refused(
    number: float, place: Callable[[float], object]
):
    with pytest.raises(DispatcherError, match="not finite"):
        Json().process_bind_param(place(number), sqlite.dialect())


@given(st.floats() | st.none())
def test_a_number_is_stored_as_it_is_or_refused(number: float | None):
    if number is None or math.isfinite(number):
        assert Number().process_bind_param(number, sqlite.dialect()) == number
        return
    with pytest.raises(DispatcherError, match="not finite"):
        Number().process_bind_param(number, postgresql.dialect())


@given(st.text())
def test_words_lose_nothing_but_nul(text: str):
    stored = Words().process_bind_param(text, postgresql.dialect())

    assert stored == text.replace("\0", "\ufffd")


def test_the_time_is_the_databases_own_on_both():
    on_postgres = str(now_ms().compile(dialect=postgresql.dialect()))
    on_sqlite = str(now_ms().compile(dialect=sqlite.dialect()))

    assert "statement_timestamp()" in on_postgres
    assert "julianday('now')" in on_sqlite
