"""Which instances may hold a lease at the same time."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import AgentId, InstanceId, LeaseId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import InboxKind, Instance, LivenessRules
from dispatcher.registry.lease import check_lease

RULES = LivenessRules()
IDEMPOTENT = Declaration(
    capabilities=[CapabilityDeclaration(name="order.query", descriptions=["Find an order"], idempotent=True)]
)
ONLY_ONCE = Declaration(
    capabilities=[
        CapabilityDeclaration(name="order.query", descriptions=["Find an order"], idempotent=True),
        CapabilityDeclaration(name="order.cancel", descriptions=["Cancel it"], idempotent=False),
    ]
)

instances = st.builds(
    Instance,
    agent_id=st.sampled_from([AgentId("order"), AgentId("faq")]),
    name=st.sampled_from(["one", "two", "three"]),
    instance_id=st.uuids().map(lambda value: InstanceId(str(value))),
    lease_id=st.uuids().map(lambda value: LeaseId(str(value))),
    inbox=st.sampled_from(InboxKind),
    inbox_id=st.sampled_from([None, "here", "there"]),
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
def test_whoever_is_let_in_ends_the_leases_of_those_that_would_be_in_its_way_alive(instance, others):
    offline = [replace(one, seen_age_s=45.0) for one in others]
    ended = check_lease(instance, IDEMPOTENT, offline, RULES)

    for one in others:
        try:
            check_lease(instance, IDEMPOTENT, [replace(one, seen_age_s=0.0)], RULES)
        except RegistrationError:
            assert one.lease_id in ended
        else:
            assert one.lease_id not in ended


@pytest.mark.parametrize("inbox", ["memory", "sqlite"])
def test_a_restart_takes_over_its_own_name_even_while_the_old_process_is_alive(instance, inbox):
    check_lease(instance("one", inbox=inbox), IDEMPOTENT, [instance("one", inbox=inbox)], RULES)


@pytest.fixture
def process(instance):
    """A process of instance `one` with a SQLite inbox."""

    def build(instance_id: str, inbox_id: str | None, **fields) -> Instance:
        named: Instance = instance("one", inbox="sqlite")
        return replace(named, instance_id=InstanceId(instance_id), inbox_id=inbox_id, **fields)

    return build


@pytest.mark.parametrize(("old", "new"), [("here", "there"), (None, "here"), ("here", None), (None, None)])
def test_a_live_process_keeps_its_name_from_one_that_does_not_know_what_it_ran(process, old, new):
    older, newer = process("before", old, seen_age_s=44.9), process("after", new)

    with pytest.raises(RegistrationError, match="same inbox file, or wait until the old") as refused:
        check_lease(newer, ONLY_ONCE, [older], RULES)

    assert refused.value.error_code == "private_inbox"


@pytest.mark.parametrize("kinds", [("sqlite", "postgres"), ("postgres", "sqlite"), ("memory", "sqlite")])
def test_another_kind_of_inbox_does_not_know_it_either(process, kinds):
    older, newer = (
        process(name, None, inbox=InboxKind(kind))
        for name, kind in zip(("before", "after"), kinds, strict=True)
    )

    assert refusal(newer, ONLY_ONCE, [older]) == ("private_inbox", ())


def test_a_restart_with_its_own_file_takes_over_what_may_not_run_twice(process):
    check_lease(process("after", "here"), ONLY_ONCE, [process("before", "here")], RULES)


def test_a_process_may_register_again_without_naming_its_inbox(process):
    check_lease(process("same", None), ONLY_ONCE, [process("same", None)], RULES)


def test_a_new_file_is_accepted_once_the_old_process_is_offline(process):
    before = process("before", "here", seen_age_s=45.0)

    assert check_lease(process("after", "there"), ONLY_ONCE, [before], RULES) == {before.lease_id}


def test_what_may_run_twice_needs_no_common_inbox(process):
    check_lease(process("after", "there"), IDEMPOTENT, [process("before", "here")], RULES)


def test_the_same_name_at_another_agent_is_somebody_else(process):
    other = process("before", "there", agent_id=AgentId("faq"))

    check_lease(process("after", "here"), ONLY_ONCE, [other], RULES)


def test_a_draining_sibling_still_counts(instance):
    draining = instance("two", inbox="sqlite", age_s=44.9)

    assert refusal(instance("one"), IDEMPOTENT, [draining]) == ("private_inbox", ())


@pytest.mark.parametrize("inboxes", [("sqlite", "postgres"), ("postgres", "sqlite")])
def test_an_offline_sibling_loses_its_lease_to_whoever_has_another_inbox(instance, inboxes):
    one, two = inboxes

    ended = check_lease(instance("one", inbox=one), IDEMPOTENT, [instance("two", inbox=two, age_s=45)], RULES)

    assert ended == {"lease-two"}


def test_an_offline_sibling_with_the_same_inbox_keeps_its_lease(instance):
    assert not check_lease(instance("one"), IDEMPOTENT, [instance("two", age_s=45.0)], RULES)


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
