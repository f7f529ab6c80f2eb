"""What every part can keep, and what none is given."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.protocol.storable import (
    BEYOND_64_BITS,
    MAX_DEPTH,
    MAX_INTEGER,
    NOT_FINITE,
    TOO_DEEP,
    UNUSABLE_TEXT,
    find_flaw,
    storable,
)

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FLAWED = [
    (2**63, BEYOND_64_BITS),
    (-(2**63), BEYOND_64_BITS),
    (10**5000, BEYOND_64_BITS),
    (float("nan"), NOT_FINITE),
    (float("inf"), NOT_FINITE),
    ("a\x00b", UNUSABLE_TEXT),
    ("\ud800", UNUSABLE_TEXT),
    ("\udc00\ud800", UNUSABLE_TEXT),
]


def nested(levels: int, *, inside: object = 1) -> object:
    for level in range(levels):
        inside = {"x": inside} if level % 2 else [inside]
    return inside


@settings(deadline=None)
@given(VALUES)
def test_what_can_be_kept_has_no_flaw(value):
    assert find_flaw(value) is None
    assert storable(value) is value


@pytest.mark.parametrize(("value", "flaw"), FLAWED, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("levels", [0, 1, MAX_DEPTH])
def test_a_flaw_is_found_at_every_level(value, flaw, levels):
    assert find_flaw(nested(levels, inside=value)) == flaw


@pytest.mark.parametrize("name", ["\x00", "\ud800"])
def test_names_are_looked_at_like_values(name):
    assert find_flaw([{name: 1}]) == UNUSABLE_TEXT


def test_depth_is_bounded_however_deep_a_value_is():
    assert find_flaw(nested(MAX_DEPTH)) is None
    assert find_flaw(nested(MAX_DEPTH + 1)) == TOO_DEEP
    assert find_flaw(nested(5000)) == TOO_DEEP


def test_a_refusal_never_quotes_the_value():
    with pytest.raises(ValueError, match=r"^holds NUL or half a surrogate pair$"):
        storable({"secret\x00": 1})
