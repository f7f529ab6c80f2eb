"""What a registration has to fulfil beyond its declaration and its lease."""

import pytest

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import LeaseId
from dispatcher.protocol.declaration import Declaration
from dispatcher.registry.admission import EVERY_CHANNEL, AdmissionRules, admit
from dispatcher.registry.agent import LivenessRules


def admitted(frame, channels):
    rules = AdmissionRules(
        liveness=LivenessRules(), default_environment="production", channels=frozenset(channels)
    )
    return admit(frame, lease_id=LeaseId("l1"), others=(), contracts={}, rules=rules)


@pytest.mark.parametrize(
    ("declared", "reached"),
    [("rabbitmq", {"in-process"}), ("in-process", {"rabbitmq"}), ("rabbitmq", set())],
)
def test_an_agent_that_no_channel_here_leads_to_is_refused(registration, declaration, declared, reached):
    with pytest.raises(RegistrationError) as refused:
        admitted(registration(declaration=declaration(channel=declared)), reached)

    assert (refused.value.error_code, refused.value.fields) == ("channel_unavailable", ("channel",))
    assert all(channel in refused.value.message for channel in reached)


@pytest.mark.parametrize("declared", sorted(EVERY_CHANNEL))
def test_an_agent_is_admitted_over_the_channel_it_declares(registration, declaration, declared):
    admission = admitted(registration(declaration=declaration(channel=declared)), {declared})

    assert admission.agent.declaration.channel == declared


def test_every_channel_that_can_be_declared_is_known():
    declared = Declaration.model_json_schema()["properties"]["channel"]["enum"]

    assert set(declared) == EVERY_CHANNEL


async def test_a_registrar_reaches_agents_over_every_channel_unless_told(replica, registration, declaration):
    for agent_id, channel in (("order", "rabbitmq"), ("faq", "in-process")):
        own = declaration(channel=channel)
        assert (await replica.registrar.register(registration(agent_id, own))).agent_id == agent_id
