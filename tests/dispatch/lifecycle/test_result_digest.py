"""Digests are stored: those of earlier releases have to stay comparable."""

import hashlib

import orjson
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.dispatch.lifecycle.settle import result_digest
from dispatcher.protocol.frames import ResultBody, ResultFrame, ResultStatus
from dispatcher.protocol.storable import MAX_INTEGER

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NUMBERS = st.integers(-MAX_INTEGER, MAX_INTEGER) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
FRAMES = st.builds(
    ResultFrame,
    request_id=st.just("q1"),
    task_id=st.just("q1.0"),
    attempt=st.integers(1, 3),
    token=st.just("token-of-attempt-0001"),
    instance_id=st.just("i1"),
    status=st.sampled_from(ResultStatus),
    result=st.builds(ResultBody, text=st.none() | TEXT, data=st.dictionaries(TEXT, VALUES, max_size=4)),
    business_error=st.booleans(),
    error_code=st.none() | TEXT,
)


def digest_of_the_first_release(frame: ResultFrame) -> str:
    content = frame.model_dump(mode="json", include={"status", "result", "business_error", "error_code"})
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


@given(FRAMES)
def test_a_digest_is_what_it_was_in_the_first_release(frame: ResultFrame) -> None:
    assert result_digest(frame) == digest_of_the_first_release(frame)


def test_a_digest_is_what_stored_ones_are() -> None:
    frame = ResultFrame(
        request_id="q1",
        task_id="q1.0",
        attempt=1,
        token="token-of-attempt-0001",  # noqa: S106  (no secret)
        instance_id="i1",
        status=ResultStatus.SUCCESS,
        result=ResultBody(text="好", data={"b": 1.5, "a": [None, True]}),
    )

    assert result_digest(frame) == "e052a94530f52961468c70e0007d2b3f2a389aceb0d88d2c93075355542401da"
