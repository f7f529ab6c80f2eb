"""What a message means after the topics and questions before it (pure).

It may answer a question: `fill`. Or it goes on with a topic: "能修吗" after "我的耳机坏了".
For that `topic_of` is kept of each message, `continuing` gives the piece to be ranked, and
`is_continued` says by the ranks whether it helps.
"""

import math
import re
from collections.abc import Mapping, Sequence

from dispatcher.intents.filler import is_courtesy
from dispatcher.intents.input_field import InputField, input_fields
from dispatcher.intents.plan import Entity, EntityKind, Piece, SpanRank
from dispatcher.intents.reference import is_leaning, plain
from dispatcher.records import replace

FREE_CHARACTERS = 64
"""A longer message is no bare answer."""
_BARE = frozenset({EntityKind.ORDER_NUMBER})
"""Kinds whose bare value, without the words around it, is not recognised as such in a message."""

ELLIPTIC_CHARACTERS = 40
"""A longer message says itself what it is about."""
LIKELY = 0.5
"""Similarity from which a capability is more likely right than not."""
TOPIC_CHARACTERS = 240
"""Of a longer topic, its end; see `DecomposeRules.ranked_characters`."""
_ELLIPTIC = re.compile(
    "^(?:那|那么|还|就|请问)?(?:(?:能|可以|会|要|可|得|该)[^，,。]{0,3}[吗么呢嘛]|(?:怎么|怎样|如何)[^，,。]{0,3})[?？]?$"
    "|^(?:那|那么|还)?(?:大概|一般)?(?:要|需要)?(?:多久|多少钱|多长时间|什么时候|几天|几点|哪天|哪里|在哪)[^，,。]{0,3}$"
    "|^(?:那|那么)?[^，,。]{1,5}呢[?？]?$"
    r"|^(?:and|or|what about|how about)\s+(?:\S+\s*){1,4}$"
    r"|^(?:in|on|at|for|with|by|tomorrow|today|tonight)\b\s*(?:\S+\s*){0,3}$"
)
"""Questions and additions that lack their object."""
_ADDING = re.compile(r"^(?:那|那么)?[^，,。]{1,5}呢[?？]?$|^(?:and|or|what about|how about)\s")
"""Those among them that name a thing of their own."""
_NAMING = frozenset({EntityKind.ORDER_NUMBER, EntityKind.PHONE})
"""Kinds that mean the same in a later message. "Yesterday" doesn't, and an amount is seldom meant twice."""
_ABOUT_US = re.compile(r"[你您](?:是|叫|好|在)|\bare you\b|\byour name\b")


def continued(topics: Sequence[str], message: str) -> str | None:
    """An elliptic message behind the latest topic; None where it needs or has none.

    `topics` are those of the same session, the latest last.
    """
    if not is_elliptic(message):
        return None
    latest = next(filter(None, (topic_of([topic]) for topic in reversed(topics))), None)
    return None if latest is None else f"{latest} {message.strip()}"


def continuing(topics: Sequence[str], message: str) -> Piece | None:
    """The message as one piece that is ranked as `continued` says; None where that gives no text.

    Its antecedent is the topic, which no character of this message holds: from 0 to 0.
    """
    together = continued(topics, message)
    if together is None:
        return None
    topic = together.removesuffix(message.strip()).strip()
    antecedent = Entity(kind=EntityKind.ANTECEDENT, text=topic, value=topic, start=0, end=0)
    return Piece(text=message, start=0, end=len(message), asked=together, antecedent=antecedent)


def named_before(topic: str, entities: Sequence[Entity]) -> tuple[Entity, ...]:
    """Those of a topic's entities that a message goes on with, from 0 to 0 like the topic itself.

    What a topic that may have been cut begins with is left out: it may be half a number.
    """
    first = 1 if len(topic) >= TOPIC_CHARACTERS else 0
    kept = (one for one in entities if one.kind in _NAMING and one.start >= first)
    return tuple(replace(one, start=0, end=0) for one in kept)


def topic_of(texts: Sequence[str]) -> str | None:
    """The topic of a message that asked for these; None where it names none by itself."""
    text = " ".join(texts)[-TOPIC_CHARACTERS:]
    return None if not text or is_courtesy(text) or is_elliptic(text) else text


def is_elliptic(message: str) -> bool:
    """Short, and about something that was named before: "能修吗", "how long does it take"."""
    if not 0 < len(message.strip()) <= ELLIPTIC_CHARACTERS:
        return False
    words = plain(message.strip())
    if is_courtesy(words) or _ABOUT_US.search(words):
        return False
    return is_leaning(words) or _ELLIPTIC.search(words) is not None


def is_continued(message: str, alone: SpanRank, together: SpanRank) -> bool:
    """Whether the message means what it means behind the topic, by the ranks of both.

    A message that names something ("what about a refund", "白色呢") and more likely than not asks for
    another capability by itself begins a topic of its own: the one before makes any two rank well.
    """
    if not together.in_scope:
        return False
    names_another = alone.capability != together.capability and _ADDING.search(message.strip().lower())
    if names_another and alone.in_scope and alone.similarity >= LIKELY:
        return False
    return not alone.in_scope or together.similarity > alone.similarity


def fill(
    schema: Mapping[str, object],
    fields: Sequence[str],
    message: str,
    entities: Sequence[Entity],
    *,
    in_scope: bool,
) -> dict[str, object] | None:
    """The values that the message gives for the fields; None where it doesn't answer.

    A field of an entity's kind takes the first entity that fits. One that is left takes the whole
    message if that is short and, by itself, nothing anybody here could do (`in_scope`). Without
    field names such a message is the answer, without values.
    """
    known = {one.name: one for one in input_fields(schema)}
    wanted = [known[name] for name in fields if name in known]
    found = _from_entities(wanted, entities)
    left = [one for one in wanted if one.name not in found]
    is_bare = not in_scope and 0 < len(message.strip()) <= FREE_CHARACTERS
    if is_bare and len(left) == 1 and not found:
        value = _free_value(left[0], message.strip())
        if value is not None:
            found[left[0].name] = value
    if found or (is_bare and not wanted):
        return found
    return None


def _from_entities(wanted: Sequence[InputField], entities: Sequence[Entity]) -> dict[str, object]:
    found: dict[str, object] = {}
    for one in wanted:
        values = (one.fitted(entity.value) for entity in entities if entity.kind is one.entity)
        value = next((value for value in values if value is not None), None)
        if value is not None:
            found[one.name] = value
    return found


def _free_value(field: InputField, text: str) -> object | None:
    if field.entity is not None and field.entity not in _BARE:
        return None
    fitted = field.fitted(text)
    if fitted is not None:
        return fitted
    try:
        number = float(text)
    except ValueError:
        return None
    return field.fitted(number) if math.isfinite(number) else None
