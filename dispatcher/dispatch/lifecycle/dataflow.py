"""Which input fields a task has, once the tasks it builds on have ended (pure)."""

from collections.abc import Mapping, Sequence

from dispatcher.dispatch.lifecycle.request import Task, TaskStatus
from dispatcher.intents.plan import Intent, Link
from dispatcher.records import Struct


class Ready(Struct, frozen=True, kw_only=True):
    """All fields that can be had."""

    inputs: Mapping[str, object]


class Wait(Struct, frozen=True, kw_only=True):
    """Some producer hasn't ended yet."""


class Skip(Struct, frozen=True, kw_only=True):
    """A required field's producers ended without it."""

    field: str


class Ask(Struct, frozen=True, kw_only=True):
    """Required fields that nobody but the user can give."""

    fields: tuple[str, ...]


def resolve_inputs(intent: Intent, tasks: Sequence[Task]) -> Ready | Wait | Skip | Ask:
    """What the task of `intent` can start with; `tasks` are those of the request, by position.

    A field takes the first of its sources, in the declared order, that completed with that
    output. It waits while an earlier source may still deliver. An optional field without any
    source goes on without it; a required one is skipped for.
    """
    if intent.missing:
        return Ask(fields=intent.missing)
    inputs = dict(intent.inputs)
    must_wait = False
    for link in intent.links:
        value, pending = _field_value(link, tasks)
        if value is not None:
            inputs[link.field] = value
        elif pending:
            must_wait = True
        elif link.required:
            return Skip(field=link.field)
    return Wait() if must_wait else Ready(inputs=inputs)


def _field_value(link: Link, tasks: Sequence[Task]) -> tuple[object | None, bool]:
    for source in link.sources:
        producer = tasks[source.position]
        if not producer.status.is_terminal:
            return None, True
        if producer.status is TaskStatus.COMPLETED and producer.result_data is not None:
            value = producer.result_data.get(source.output)
            if value is not None:
                return value, False
    return None, False
