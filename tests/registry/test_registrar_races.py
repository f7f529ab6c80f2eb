"""Registrations that meet: of those that exclude one another one is stored, at whichever replicas."""

import pytest

from dispatcher.errors import RegistrationError, UnavailableError
from dispatcher.identifiers import AgentId

ORDER = AgentId("order")


async def refusal(awaitable):
    with pytest.raises(RegistrationError) as refused:
        await awaitable
    return refused.value.error_code


async def test_what_became_wrong_while_the_queue_was_made_is_refused(new_replica, repository, registration):
    here, there = new_replica(), new_replica()

    async def register_there() -> None:
        await there.registrar.register(registration(name="two", inbox="sqlite"))

    here.before_queue = register_there

    assert await refusal(here.registrar.register(registration(inbox="sqlite"))) == "private_inbox"
    assert [row.name for row, _ in repository.rows.values()] == ["two"]


async def test_two_replicas_never_let_two_private_inboxes_in(new_replica, repository, registration):
    here, there = new_replica(), new_replica()
    repository.before_save = lambda: there.registrar.register(registration(name="two", inbox="sqlite"))

    code = await refusal(here.registrar.register(registration(name="one", inbox="sqlite")))

    assert code == "private_inbox"
    assert [row.name for row, _ in repository.rows.values()] == ["two"]
    assert [one.instance.name for one in here.view.instances(ORDER)] == ["two"]


async def test_two_replicas_never_let_two_schemas_of_one_capability_live(
    new_replica, repository, registration, declaration, capability
):
    def typed(kind):
        return declaration(capability(input_schema={"properties": {"order": {"type": kind}}}))

    here, there = new_replica(), new_replica()
    repository.before_save = lambda: there.registrar.register(registration("faq", typed("string")))

    code = await refusal(here.registrar.register(registration("order", typed("integer"))))

    assert code == "incompatible_schema"
    assert [agent.agent_id for agent in here.view.agents()] == ["faq"]


async def test_of_two_processes_under_one_name_at_two_replicas_one_gets_the_lease(
    new_replica, repository, registration, declaration, capability
):
    once = {"declaration": declaration(capability(idempotent=False)), "inbox": "sqlite"}
    here, there = new_replica(), new_replica()
    first = registration(instance_id="first", inbox_id="file-1", **once)
    repository.before_save = lambda: there.registrar.register(first)

    code = await refusal(
        here.registrar.register(registration(instance_id="second", inbox_id="file-2", **once))
    )

    assert code == "private_inbox"
    assert [row.instance_id for row, _ in repository.rows.values()] == ["first"]
    assert [one.instance.instance_id for one in here.view.instances(ORDER)] == ["first"]


async def test_an_instance_that_is_heard_at_the_last_moment_keeps_its_place(
    new_replica, repository, registration, beat, clock
):
    here, there = new_replica(), new_replica()
    stopped = await there.registrar.register(registration(name="one", inbox="sqlite"))
    clock.now += 45.0
    repository.before_save = lambda: there.registrar.heartbeat_checked(beat(stopped))

    code = await refusal(here.registrar.register(registration(name="two", inbox="sqlite")))

    assert code == "private_inbox"
    await there.registrar.heartbeat_checked(beat(stopped))


async def test_whoever_is_overtaken_without_harm_is_checked_again_and_registered(
    new_replica, repository, registration
):
    here, there = new_replica(), new_replica()
    repository.before_save = lambda: there.registrar.register(registration("faq"))

    await here.registrar.register(registration("order"))

    assert [agent.agent_id for agent in here.view.agents()] == ["faq", "order"]


async def test_a_registration_that_is_overtaken_again_and_again_gives_up(
    new_replica, repository, registration
):
    here, there = new_replica(), new_replica()

    async def overtake() -> None:
        await there.registrar.register(registration(name="two"))
        repository.before_save = overtake

    repository.before_save = overtake
    with pytest.raises(UnavailableError):
        await here.registrar.register(registration(name="one"))
