"""A ticket is good for one permit under one key, and for nothing else."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dispatcher.protocol.direct import DirectKey, DirectKeys, Permit, is_valid, make_ticket

KEY = DirectKey(key_id="7", secret="ab" * 32)
OTHER = DirectKey(key_id="8", secret="cd" * 32)
PERMIT = Permit(caller="alice", capability="order.query", agent_id="shop")
HELD = {key.key_id: key for key in (KEY, OTHER)}
permits = st.builds(Permit, caller=st.text(), capability=st.text(), agent_id=st.text())


@given(permits)
def test_a_ticket_is_good_for_its_permit(permit):
    assert is_valid(make_ticket(KEY, permit), permit, HELD)


@given(permits, permits)
def test_a_ticket_is_good_for_no_other_permit(permit, other):
    assume(permit != other)

    assert not is_valid(make_ticket(KEY, permit), other, HELD)


def test_parts_of_a_permit_can_not_be_moved_from_one_to_the_next():
    ticket = make_ticket(KEY, Permit(caller="a", capability='b", "c', agent_id="d"))

    assert not is_valid(ticket, Permit(caller='a", "b', capability="c", agent_id="d"), HELD)


def test_a_ticket_dies_with_its_key():
    ticket = make_ticket(KEY, PERMIT)

    assert not is_valid(ticket, PERMIT, {"8": OTHER})
    assert not is_valid(ticket, PERMIT, {"7": OTHER})
    assert not is_valid(ticket, PERMIT, {})


@given(st.text(), st.integers(0, 63))
def test_what_was_not_made_with_the_key_is_no_ticket(text, at):
    ticket = make_ticket(KEY, PERMIT)
    place = ticket.index(".") + 1 + at
    forged = ticket[:place] + ("0" if ticket[place] != "0" else "1") + ticket[place + 1 :]

    assert not is_valid(forged, PERMIT, HELD)
    assert not is_valid(text, PERMIT, HELD)
    assert not is_valid(ticket.replace("7.", "8.", 1), PERMIT, HELD)
    assert not is_valid(f"{ticket}\n", PERMIT, HELD)


def test_a_ticket_fits_a_header():
    ticket = make_ticket(
        DirectKey(key_id="9" * 32, secret="ab" * 32), Permit(caller="ü" * 500, capability="c", agent_id="a")
    )

    assert ticket.isascii()
    assert ticket.isprintable()
    assert 66 <= len(ticket) <= 97


def test_secrets_are_not_shown():
    keys = DirectKeys(agent_id="shop", keys=[KEY], renew_in_s=60)

    assert KEY.secret not in repr(keys)


@pytest.mark.parametrize("keys", [[], [KEY] * 5])
def test_an_agent_holds_a_few_keys(keys):
    with pytest.raises(ValueError, match="keys"):
        DirectKeys(agent_id="shop", keys=keys, renew_in_s=60)
