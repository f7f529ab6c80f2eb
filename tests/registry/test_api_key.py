"""API keys."""

from dataclasses import replace

import pytest

from dispatcher.registry.access import Role
from dispatcher.registry.api_key import fits, new_key, parse_key


def test_a_new_key_fits_itself_and_its_text_is_not_stored():
    key, text = new_key(Role.CALLER, "shop")
    presented = parse_key(text)

    assert presented is not None
    assert presented.key_id == key.key_id
    assert fits(presented, key)
    assert presented.secret not in repr(key)
    assert (key.role, key.subject) == (Role.CALLER, "shop")


def test_no_two_keys_are_alike():
    assert len({new_key(Role.CALLER, "shop")[1] for _ in range(50)}) == 50


def test_a_key_fits_neither_another_nor_a_revoked_nor_an_unknown_one():
    key, text = new_key(Role.CALLER, "shop")
    other, _ = new_key(Role.CALLER, "shop")
    presented = parse_key(text)

    assert presented is not None
    assert not fits(presented, other)
    assert not fits(presented, replace(key, revoked=True))
    assert not fits(presented, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ard",
        "ard__",
        "ard_0123456789abcdef_short",
        "xyz_0123456789abcdef_" + "a" * 43,
        "ard_é_" + "a" * 43,
    ],
)
def test_other_texts_are_no_keys(text):
    assert parse_key(text) is None


def test_a_line_break_after_a_key_makes_it_none():
    assert parse_key(new_key(Role.CALLER, "shop")[1] + "\n") is None


def test_a_presented_secret_is_not_shown_by_accident():
    presented = parse_key(new_key(Role.CALLER, "shop")[1])

    assert presented is not None
    assert presented.secret not in repr(presented)
