"""What a message says by itself, whatever is registered (pure)."""

from datetime import date

from dispatcher.intents.entity import extract_entities
from dispatcher.intents.language import detect_language
from dispatcher.intents.plan import Entity
from dispatcher.records import Struct


class Reading(Struct, frozen=True, kw_only=True):
    """The language of a text and what it names, in its order."""

    language: str
    entities: tuple[Entity, ...]


def read_text(text: str, language: str | None, today: date) -> Reading:
    """Read a text in the given language, else in the one it is in; relative dates count from `today`."""
    spoken = language or detect_language(text)
    return Reading(language=spoken, entities=extract_entities(text, language=spoken, today=today))
