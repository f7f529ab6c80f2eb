"""What a conversation remembers between requests: its context, the open questions, its topics (pure).

Requirement B6. Several requests of a session may run at once. Each saw the context in some version;
a key that another request changed since then is not overwritten by a reply that did not know of it.
Questions are closed one by one, so that none is lost or comes back that another request asked or closed.
A change of another user takes the session over, but not one that comes late: see `apply`.
"""

from collections.abc import Mapping, Sequence

import orjson

from dispatcher.dispatch.lifecycle.option import read_options
from dispatcher.dispatch.lifecycle.request import Task, TaskStatus
from dispatcher.identifiers import CallerId, Capability
from dispatcher.intents.plan import Intent
from dispatcher.records import Struct, field, replace

MAX_KEYS = 64
MAX_CONTEXT_BYTES = 16_384
MAX_QUESTIONS = 8
MAX_TOPICS = 3
_ASKING = frozenset({TaskStatus.NEEDS_INPUT, TaskStatus.CLARIFY})


class Remembered(Struct, frozen=True, kw_only=True):
    """A value of the context and the session's version that it came with; None for one that was removed."""

    value: object
    version: int


class Question(Struct, frozen=True, kw_only=True):
    """Something that a part still needs: enough to take it up again when the answer comes.

    `fields` are the missing inputs, empty where the agent named none. `similarity` is what the
    part had been routed with, in [0, 1]. With `options` it is asked which of these capabilities is
    meant, by their number from 1; each comes with its similarity, and `capability` is the first.
    """

    capability: Capability
    text: str
    similarity: float
    fields: tuple[str, ...] = ()
    inputs: Mapping[str, object] = field(default_factory=dict)
    options: tuple[tuple[Capability, float], ...] = ()


class Session(Struct, frozen=True, kw_only=True):
    """A caller's conversation. `version` counts its changes, 0 for one that nothing is known of.

    It belongs to the user whom a change named last, of those that were taken. `topics` are those of its
    messages, the latest last; see `follow_up.topic_of`.
    """

    caller: CallerId
    session_id: str
    user_id: str | None = None
    version: int = 0
    context: Mapping[str, Remembered] = field(default_factory=dict)
    questions: tuple[Question, ...] = ()
    topics: tuple[str, ...] = ()

    def values(self) -> dict[str, object]:
        """The context as requests see it."""
        return {key: kept.value for key, kept in self.context.items() if kept.value is not None}

    def found_by(self, user_id: str | None) -> "Session":
        """The session as a message of this user finds it: empty where it belongs to another one.

        Where either is not named, they are taken for the same.
        """
        return replace(self, context={}, questions=(), topics=()) if self.is_of_another(user_id) else self

    def is_of_another(self, user_id: str | None) -> bool:
        """Whether it belongs to another user than this one; see `found_by`."""
        return None not in {user_id, self.user_id} and user_id != self.user_id


class SessionChange(Struct, frozen=True, kw_only=True):
    """What one step of a request does to its session, knowing the version it saw.

    `update` sets keys, null removes one. `closed` are questions that were seen open and are over now,
    `asked` is put before those that are left. `topic` is put behind the others, None leaves them.
    """

    caller: CallerId
    session_id: str
    user_id: str | None
    seen_version: int
    update: Mapping[str, object] = field(default_factory=dict)
    closed: tuple[Question, ...] = ()
    asked: tuple[Question, ...] = ()
    topic: str | None = None


class Applied(Struct, frozen=True, kw_only=True):
    """The session after a change, and the keys of its update that were not taken: others set them since."""

    session: Session
    conflicts: tuple[str, ...] = ()
    too_large: bool = False
    """The update was not taken: with it, the context would pass MAX_KEYS or MAX_CONTEXT_BYTES."""
    is_late: bool = False
    """Nothing of the change was taken: the session belongs to another user, and changed since it was seen."""


def apply(session: Session, change: SessionChange) -> Applied:
    """The session after the change; where that names another user, nothing is left of the one before.

    Another user's change is taken only if it saw the newest version: what a request still had to say when
    its session had gone to another user would take from that one what is theirs.
    """
    if session.is_of_another(change.user_id) and change.seen_version != session.version:
        return Applied(session=session, conflicts=tuple(change.update), is_late=True)
    session = session.found_by(change.user_id)
    version = session.version + 1
    conflicts = tuple(key for key in change.update if _is_newer(session, key, change.seen_version))
    taken = {key: value for key, value in change.update.items() if key not in conflicts}
    context = dict(session.context)
    context |= {
        key: Remembered(value=value, version=version)
        for key, value in taken.items()
        if value is not None or key in context
    }
    too_large = bool(taken) and not _fits(context)
    after = replace(
        session,
        version=version,
        user_id=change.user_id or session.user_id,
        context=session.context if too_large else _without_old_removals(context),
        questions=(*change.asked, *without(session.questions, change.closed))[:MAX_QUESTIONS],
        topics=session.topics if change.topic is None else (*session.topics, change.topic)[-MAX_TOPICS:],
    )
    return Applied(session=after, conflicts=conflicts, too_large=too_large)


def without(questions: Sequence[Question], closed: Sequence[Question]) -> tuple[Question, ...]:
    """The questions that are left; of equal ones as many are closed as `closed` has, the first ones."""
    left = list(questions)
    for question in closed:
        if question in left:
            left.remove(question)
    return tuple(left)


def open_questions(tasks: Sequence[Task], intents: Sequence[Intent]) -> tuple[Question, ...]:
    """What ended tasks still need from the person, by position."""
    asking = [task for task in tasks if task.status in _ASKING]
    found = [_question(task, intents[task.position]) for task in asking]
    return tuple([question for question in found if question is not None])


def _question(task: Task, intent: Intent) -> Question | None:
    if task.status is TaskStatus.CLARIFY:
        return _which(task, intent)
    if task.capability is None:
        return None
    asked = (task.result_data or {}).get("fields")
    named = asked if isinstance(asked, Sequence) and not isinstance(asked, str) else ()
    return Question(
        capability=task.capability,
        text=intent.text,
        similarity=task.similarity,
        fields=intent.missing or tuple(str(name) for name in named),
        inputs={**intent.inputs, **task.inputs},
    )


def _which(task: Task, intent: Intent) -> Question | None:
    """Nothing is known for any of the capabilities yet: their fields are found once one is chosen."""
    options = tuple((one.capability, one.similarity) for one in read_options(task.result_data))
    if not options:
        return None
    first, similarity = options[0]
    return Question(capability=first, text=intent.text, similarity=similarity, options=options)


def _is_newer(session: Session, key: str, seen_version: int) -> bool:
    kept = session.context.get(key)
    return kept is not None and kept.version > seen_version


def _fits(context: Mapping[str, Remembered]) -> bool:
    values = {key: kept.value for key, kept in context.items() if kept.value is not None}
    return len(values) <= MAX_KEYS and len(orjson.dumps(values)) <= MAX_CONTEXT_BYTES


def _without_old_removals(context: Mapping[str, Remembered]) -> dict[str, Remembered]:
    """Of the keys that were removed, the MAX_KEYS latest are known as such."""
    removed = [key for key, kept in context.items() if kept.value is None]
    removed.sort(key=lambda key: context[key].version, reverse=True)
    return {key: kept for key, kept in context.items() if key not in removed[MAX_KEYS:]}
