import json

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql, sqlite

from dispatcher.store.column import Json, Words, now_ms

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


@given(st.text())
def test_words_lose_nothing_but_nul(text: str):
    stored = Words().process_bind_param(text, postgresql.dialect())

    assert stored == text.replace("\0", "\ufffd")


def test_the_time_is_the_databases_own_on_both():
    on_postgres = str(now_ms().compile(dialect=postgresql.dialect()))
    on_sqlite = str(now_ms().compile(dialect=sqlite.dialect()))

    assert "statement_timestamp()" in on_postgres
    assert "julianday('now')" in on_sqlite
