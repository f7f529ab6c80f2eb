"""Names as an operator types them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.cli.names import read_caller, read_capabilities, read_role, read_subject, read_user
from dispatcher.errors import ConfigurationError
from dispatcher.registry.access import Role

NOT_VISIBLE = ["", "a" * 65, "a b", "a\u3000b", "a\u200bb", "a\nb", "\x00", "\udcff"]
NOT_NAMES = ["", "a" * 65, "Order", "order query", "order.*", "*", ".order", "order\n", "订单"]


@given(text=st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=64))
def test_a_caller_may_have_any_visible_name(text):
    assert read_caller(text) == text
    assert read_subject(Role.ADMIN, text) == text


@pytest.mark.parametrize("text", NOT_VISIBLE)
@pytest.mark.parametrize("role", [Role.CALLER, Role.ADMIN])
def test_a_caller_whose_name_cannot_be_seen_is_refused(role, text):
    with pytest.raises(ConfigurationError, match="1 to 64 visible characters"):
        read_subject(role, text)


@given(text=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,63}", fullmatch=True))
def test_agents_and_capabilities_have_the_names_of_the_wire(text):
    assert read_subject(Role.AGENT, text) == text
    assert read_capabilities([text, text]) == {text}


@pytest.mark.parametrize("text", NOT_NAMES)
def test_other_names_of_agents_and_capabilities_are_refused(text):
    with pytest.raises(ConfigurationError, match="an agent's id is 1 to 64 of a-z"):
        read_subject(Role.AGENT, text)
    with pytest.raises(ConfigurationError, match="not a capability's name"):
        read_capabilities(["faq.answer", text])


def test_no_capabilities_are_none():
    assert read_capabilities([]) == frozenset()


def test_only_three_roles_exist():
    assert [read_role(text) for text in ("caller", "agent", "admin")] == list(Role)
    with pytest.raises(ConfigurationError, match="one of caller, agent, admin"):
        read_role("boss")


def test_a_user_id_is_text_that_can_be_stored():
    assert read_user("用户 1") == "用户 1"
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        read_user("\udcff")
