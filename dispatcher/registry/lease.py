"""Which instances of an agent may hold a lease at the same time (I2).

A lease fences only an older one of the same instance name, never a sibling's. Only a shared
inbox keeps two instances from running one task twice, so a private one allows no live sibling.
A fenced process may still run a task, and only its own inbox knows of it: whoever takes the
name over brings that inbox or waits until the process is OFFLINE. An OFFLINE one may only be stopped
or cut off: whoever is let in beside it ends its lease, so that it starts nothing when it comes back.
"""

from collections.abc import Iterable

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import LeaseId
from dispatcher.protocol.declaration import Declaration
from dispatcher.registry.agent import InboxKind, Instance, LivenessRules
from dispatcher.registry.liveness import is_live


def check_lease(
    instance: Instance, declaration: Declaration, others: Iterable[Instance], rules: LivenessRules
) -> frozenset[LeaseId]:
    """Refuse an instance that could make a task run twice; the leases that end as its own begins.

    `others` may hold its own older lease and instances of other agents. The leases are those of
    instances that are OFFLINE, and would have been in its way otherwise.

    Raises:
        RegistrationError: `memory_inbox_not_idempotent` with the capabilities as `fields`,
            `private_inbox` or `instance_id_taken`.
    """
    fragile = _lost_by_restart(instance.inbox, declaration)
    if fragile:
        raise RegistrationError(
            "an inbox in memory forgets what it ran; declare these capabilities idempotent or use another",
            code="memory_inbox_not_idempotent",
            fields=fragile,
        )
    others = tuple(others)
    if any(_is_another(other, instance) and other.instance_id == instance.instance_id for other in others):
        raise RegistrationError("another instance has this instance_id", code="instance_id_taken")
    rivals = [other for other in others if _is_rival(other, instance)]
    if any(is_live(rival.seen_age_s, rules) for rival in rivals):
        raise RegistrationError(
            "several instances need an inbox they share; another one is alive", code="private_inbox"
        )
    older = [other for other in others if _only_once(declaration) and _is_forgotten(other, instance)]
    if any(is_live(process.seen_age_s, rules) for process in older):
        raise RegistrationError(
            f"{instance.name!r} is alive with another inbox; use the same inbox file, "
            "or wait until the old instance is offline",
            code="private_inbox",
        )
    return frozenset(one.lease_id for one in (*rivals, *older))


def _is_rival(other: Instance, instance: Instance) -> bool:
    """Whether it is another instance of the agent, and they don't share an inbox; draining or not."""
    is_sibling = other.agent_id == instance.agent_id and _is_another(other, instance)
    return is_sibling and (other.inbox.is_private or instance.inbox.is_private)


def _is_forgotten(older: Instance, instance: Instance) -> bool:
    """Whether it is a process of that name which may have run what the new one's inbox doesn't know."""
    return (
        not _is_another(older, instance)
        and InboxKind.SQLITE in (instance.inbox, older.inbox)
        and not _remembers(instance, older)
    )


def _remembers(instance: Instance, older: Instance) -> bool:
    """Whether both have one inbox. One without an id belongs to its process alone."""
    if instance.inbox_id is None:
        return older.inbox_id is None and older.instance_id == instance.instance_id
    return instance.inbox_id == older.inbox_id


def _is_another(one: Instance, other: Instance) -> bool:
    return (one.agent_id, one.name) != (other.agent_id, other.name)


def _lost_by_restart(inbox: InboxKind, declaration: Declaration) -> tuple[str, ...]:
    return _only_once(declaration) if inbox is InboxKind.MEMORY else ()


def _only_once(declaration: Declaration) -> tuple[str, ...]:
    return tuple(c.name for c in declaration.capabilities if not c.idempotent)
