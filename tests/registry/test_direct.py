"""Which keys there are at a time of the database, and how long a ticket lives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.identifiers import AgentId
from dispatcher.protocol.declaration import Declaration
from dispatcher.protocol.direct import DirectKeys, Permit, is_valid
from dispatcher.registry.agent import Agent
from dispatcher.registry.direct import Moment, TicketRules, derive_key, direct_endpoint

SHOP = AgentId("shop")
SECRET = bytes(range(32))
PERMIT = Permit(caller="alice", capability="order.query", agent_id=SHOP)
RULES = TicketRules(epoch_s=3600)
EPOCH_MS, LEAD_MS = 3_600_000, 900_000
times = st.integers(0, 4_000_000_000_000)


def at(now_ms: int, rules: TicketRules = RULES) -> Moment:
    return Moment(secret=SECRET, now_ms=now_ms, rules=rules)


def admits(keys: DirectKeys, ticket: str, permit: Permit = PERMIT) -> bool:
    return is_valid(ticket, permit, {key.key_id: key for key in keys.keys})


@given(times, st.integers(0, LEAD_MS))
def test_an_agent_that_renewed_within_the_lead_accepts_a_fresh_ticket(now_ms, ago_ms):
    ticket = at(now_ms).ticket(PERMIT)

    assert admits(at(max(now_ms - ago_ms, 0)).keys(SHOP), ticket.text)


@given(times, st.integers(0, EPOCH_MS + LEAD_MS))
def test_an_agent_in_touch_accepts_a_ticket_for_as_long_as_was_said(now_ms, later_ms):
    ticket = at(now_ms).ticket(PERMIT)

    is_admitted = admits(at(now_ms + later_ms).keys(SHOP), ticket.text)

    assert is_admitted == (later_ms < ticket.expires_in_s * 1000)


@given(times)
def test_a_ticket_lives_for_the_lead_at_least_and_for_an_epoch_more_at_most(now_ms):
    lives_ms = at(now_ms).ticket(PERMIT).expires_in_s * 1000

    assert LEAD_MS < lives_ms <= EPOCH_MS + LEAD_MS


@given(times)
def test_every_replica_makes_the_same_keys(now_ms):
    assert at(now_ms).keys(SHOP) == at(now_ms).keys(SHOP)
    assert at(now_ms).keys(SHOP) != at(now_ms + EPOCH_MS).keys(SHOP)


def test_keys_of_agents_epochs_and_secrets_have_nothing_in_common():
    made = [
        derive_key(secret, agent_id, epoch).secret
        for secret in (SECRET, bytes(32))
        for agent_id in (SHOP, AgentId("shop2"))
        for epoch in (1, 2, 12, 21)
    ]

    assert len(set(made)) == len(made)


def test_one_agents_key_is_no_good_at_another():
    permit = Permit(caller="alice", capability="order.query", agent_id="faq")
    ticket = at(0).ticket(permit)

    assert not admits(at(0).keys(SHOP), ticket.text, permit)


@pytest.mark.parametrize(("epoch_s", "renew_in_s"), [(60, 15), (3600, 60)])
def test_keys_are_renewed_within_the_lead(epoch_s, renew_in_s):
    assert at(0, TicketRules(epoch_s=epoch_s)).keys(SHOP).renew_in_s == renew_in_s


def test_the_secret_is_not_shown():
    assert repr(SECRET) not in repr(at(0))
    assert at(0).ticket(PERMIT).text not in repr(at(0).ticket(PERMIT))


@pytest.mark.parametrize(
    ("channel", "allows", "endpoint"),
    [
        ("http", True, "http://shop.example/tasks"),
        ("http", False, None),
        ("rabbitmq", True, None),
    ],
)
def test_an_agent_is_called_directly_where_it_allows_it_and_has_an_address(channel, allows, endpoint):
    declaration = Declaration.model_validate(
        {
            "channel": channel,
            "endpoint": "http://shop.example/tasks",
            "direct_fallback": allows,
            "capabilities": [{"name": "order.query", "descriptions": ["Says where an order is."]}],
        }
    )
    agent = Agent(agent_id=SHOP, declaration=declaration, digest="d", environment="production")

    assert direct_endpoint(agent) == endpoint
