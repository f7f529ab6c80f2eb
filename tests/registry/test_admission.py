"""What a registration has to fulfil beyond its declaration and its lease."""

import pytest

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import LeaseId
from dispatcher.protocol.declaration import Declaration
from dispatcher.registry.admission import EVERY_CHANNEL, AdmissionRules, admit
from dispatcher.registry.agent import LivenessRules

ENDPOINT = "https://agent.example/tasks"


def admitted(frame, channels, **more):
    rules = AdmissionRules(
        liveness=LivenessRules(), default_environment="production", channels=frozenset(channels), **more
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
    endpoint = ENDPOINT if declared == "http" else None
    own = declaration(channel=declared, endpoint=endpoint)

    assert admitted(registration(declaration=own), {declared}).agent.declaration == own


@pytest.mark.parametrize(("channel", "endpoint"), [("http", None), ("rabbitmq", ENDPOINT)])
def test_an_endpoint_belongs_to_the_channel_that_needs_it(registration, declaration, channel, endpoint):
    with pytest.raises(RegistrationError) as refused:
        admitted(registration(declaration=declaration(channel=channel, endpoint=endpoint)), EVERY_CHANNEL)

    assert (refused.value.error_code, refused.value.fields) == ("endpoint_mismatch", ("endpoint",))


def test_an_endpoint_that_must_not_be_called_is_refused_with_the_reason(registration, declaration):
    frame = registration(declaration=declaration(channel="http", endpoint=ENDPOINT))

    def flaw(*asked: object) -> str | None:
        return "leads to a loopback address" if asked == (ENDPOINT, None) else None

    with pytest.raises(RegistrationError) as refused:
        admitted(frame, {"http"}, endpoint_flaw=flaw)

    assert (refused.value.error_code, refused.value.fields) == ("endpoint_refused", ("endpoint",))
    assert "leads to a loopback address" in refused.value.message


def test_an_agent_without_an_endpoint_keeps_the_document_of_the_first_release(declaration):
    assert "endpoint" not in declaration().to_json()
    assert declaration(channel="http", endpoint=ENDPOINT).to_json()["endpoint"] == ENDPOINT


def test_every_channel_that_can_be_declared_is_known():
    declared = Declaration.model_json_schema()["properties"]["channel"]["enum"]

    assert set(declared) == EVERY_CHANNEL


async def test_a_registrar_reaches_agents_over_every_channel_unless_told(replica, registration, declaration):
    for agent_id, channel in (("order", "rabbitmq"), ("faq", "in-process")):
        own = declaration(channel=channel)
        assert (await replica.registrar.register(registration(agent_id, own))).agent_id == agent_id
