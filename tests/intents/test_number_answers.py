"""What a person says to a question for a number."""

import pytest

from dispatcher.intents.follow_up import fill

SCHEMA = {"properties": {"size": {"type": "number"}}}


def _filled(message: str) -> object:
    return fill(SCHEMA, ["size"], message, [], in_scope=False)


@pytest.mark.parametrize("said", ["nan", "NaN", "inf", "-Infinity", "1e999"])
def test_what_is_not_finite_is_no_number(said):
    """JSON has none of them: the task could not be stored."""
    assert _filled(said) is None


@pytest.mark.parametrize(("said", "value"), [("42.5", 42.5), (" -3 ", -3.0)])
def test_a_number_is_one(said, value):
    assert _filled(said) == {"size": value}
