"""Which instances of an agent may hold a lease at the same time (I2).

A lease fences only an older one of the same instance name, never a sibling's. Only a shared
inbox keeps two instances from running one task twice, so a private one allows no live sibling.
A fenced process may still run a task, and only its own inbox knows of it: whoever takes the
name over brings that inbox or waits until the process is OFFLINE.
"""

from collections.abc import Iterable, Sequence

from dispatcher.errors import RegistrationError
from dispatcher.protocol.declaration import Declaration
from dispatcher.registry.agent import InboxKind, Instance, LivenessRules
from dispatcher.registry.liveness import is_live


def check_lease(
    instance: Instance, declaration: Declaration, others: Iterable[Instance], rules: LivenessRules
) -> None:
    """Refuse an instance that could make a task run twice.

    `others` may hold its own older lease and instances of other agents.

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
    siblings = live_siblings(instance, others, rules)
    if any(one.inbox.is_private or instance.inbox.is_private for one in siblings):
        raise RegistrationError(
            "several instances need an inbox they share; another one is alive", code="private_inbox"
        )
    if _only_once(declaration) and _forgotten_lives(instance, others, rules):
        raise RegistrationError(
            f"{instance.name!r} is alive with another inbox; use the same inbox file, "
            "or wait until the old instance is offline",
            code="private_inbox",
        )


def live_siblings(instance: Instance, others: Iterable[Instance], rules: LivenessRules) -> Sequence[Instance]:
    """The agent's other instances that are not OFFLINE; a draining one still runs what it has."""
    return [
        other
        for other in others
        if other.agent_id == instance.agent_id
        and _is_another(other, instance)
        and is_live(other.seen_age_s, rules)
    ]


def _forgotten_lives(instance: Instance, others: Iterable[Instance], rules: LivenessRules) -> bool:
    """Whether an older process of that name may still run what the new one's inbox doesn't know."""
    return any(
        not _is_another(other, instance)
        and is_live(other.seen_age_s, rules)
        and InboxKind.SQLITE in (instance.inbox, other.inbox)
        and not _remembers(instance, other)
        for other in others
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
