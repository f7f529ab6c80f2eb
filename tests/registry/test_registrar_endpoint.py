"""An endpoint is called before its agent is registered."""

import pytest

from dispatcher.errors import RegistrationError, UnroutableError


async def test_an_endpoint_that_nobody_serves_is_refused_and_leaves_nothing(
    replica, repository, registration, declaration
):
    own = declaration(channel="http", endpoint="https://agent.example/tasks")
    replica.unreachable = UnroutableError("nobody listens there", code="endpoint_unreachable")

    with pytest.raises(RegistrationError, match="nobody listens there") as refused:
        await replica.registrar.register(registration(declaration=own), client="192.0.2.7")

    assert (refused.value.error_code, refused.value.fields) == ("endpoint_unreachable", ("endpoint",))
    assert replica.reached == [("https://agent.example/tasks", "192.0.2.7")]
    assert (repository.agents, repository.rows, replica.prepared) == ({}, {}, [])


async def test_an_endpoint_is_called_at_every_registration_and_no_other_agent_is_called(
    replica, registration, declaration
):
    own = declaration(channel="http", endpoint="https://agent.example/tasks")

    await replica.registrar.register(registration(declaration=own))
    await replica.registrar.register(registration(declaration=own))
    await replica.registrar.register(registration("faq"))

    assert replica.reached == [("https://agent.example/tasks", None)] * 2
