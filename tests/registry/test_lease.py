"""Which instances may hold a lease at the same time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import AgentId, InstanceId, LeaseId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import InboxKind, Instance, LivenessRules
from dispatcher.registry.lease import check_lease, live_siblings
from dispatcher.registry.liveness import is_live

RULES = LivenessRules()
IDEMPOTENT = Declaration(
    capabilities=[CapabilityDeclaration(name="order.query", descriptions=["Find an order"], idempotent=True)]
)

instances = st.builds(
    Instance,
    agent_id=st.sampled_from([AgentId("order"), AgentId("faq")]),
    name=st.sampled_from(["one", "two", "three"]),
    instance_id=st.uuids().map(lambda value: InstanceId(str(value))),
    lease_id=st.uuids().map(lambda value: LeaseId(str(value))),
    inbox=st.sampled_from(InboxKind),
    draining=st.booleans(),
    seen_age_s=st.floats(0, 100),
)


def refusal(instance, declaration, others):
    with pytest.raises(RegistrationError) as refused:
        check_lease(instance, declaration, others, RULES)
    return refused.value.error_code, refused.value.fields


@given(instance=instances, others=st.lists(instances))
def test_a_private_inbox_never_has_a_live_sibling(instance, others):
    siblings = [
        one
        for one in others
        if one.agent_id == instance.agent_id and one.name != instance.name and one.seen_age_s < 45
    ]
    shared = all(one.inbox is InboxKind.POSTGRES for one in (instance, *siblings))

    if shared or not siblings:
        check_lease(instance, IDEMPOTENT, others, RULES)
    else:
        assert refusal(instance, IDEMPOTENT, others) == ("private_inbox", ())


@given(instance=instances, others=st.lists(instances))
def test_siblings_are_live_and_never_the_instance_itself(instance, others):
    for sibling in live_siblings(instance, others, RULES):
        assert sibling.agent_id == instance.agent_id
        assert sibling.name != instance.name
        assert is_live(sibling.seen_age_s, RULES)


@pytest.mark.parametrize("inbox", ["memory", "sqlite"])
def test_a_restart_takes_over_its_own_name_even_while_the_old_process_is_alive(instance, inbox):
    check_lease(instance("one", inbox=inbox), IDEMPOTENT, [instance("one", inbox=inbox)], RULES)


def test_a_draining_sibling_still_counts(instance):
    draining = instance("two", inbox="sqlite", age_s=44.9)

    assert refusal(instance("one"), IDEMPOTENT, [draining]) == ("private_inbox", ())


def test_an_offline_sibling_does_not_count(instance):
    check_lease(instance("one", inbox="sqlite"), IDEMPOTENT, [instance("two", age_s=45.0)], RULES)


def test_an_inbox_in_memory_is_refused_for_what_may_not_run_twice(instance, declaration, capability):
    declared = declaration(
        capability("a", idempotent=False), capability("b"), capability("c", idempotent=False)
    )

    found = refusal(instance(inbox="memory"), declared, [])

    assert found == ("memory_inbox_not_idempotent", ("a", "c"))


def test_other_inboxes_take_what_may_not_run_twice(instance, declaration, capability):
    check_lease(instance(inbox="sqlite"), declaration(capability(idempotent=False)), [], RULES)


def test_an_instance_id_belongs_to_one_instance(instance):
    taken = Instance(
        agent_id=AgentId("faq"),
        name="one",
        instance_id=InstanceId("order-one"),
        lease_id=LeaseId("other"),
        inbox=InboxKind.POSTGRES,
        seen_age_s=1e6,
    )

    assert refusal(instance("one"), IDEMPOTENT, [taken]) == ("instance_id_taken", ())
