"""What a person may choose between, and how that is told (pure)."""

from collections.abc import Mapping, Sequence
from typing import Any

from dispatcher.identifiers import Capability
from dispatcher.intents.language import detect_language
from dispatcher.records import Struct, asdict

DESCRIPTION_CHARACTERS = 80
"""Of an option's description, as a person sees it."""


class DescribedOption(Struct, frozen=True, kw_only=True):
    """A capability that may be meant, in words; `similarity` is calibrated, in [0, 1]."""

    capability: Capability
    description: str
    similarity: float


def description_for(descriptions: Sequence[str], capability: Capability, language: str) -> str:
    """The first description in the language, else the first of all, cut; the name where there is none.

    `language` other than zh takes English.
    """
    wanted = "zh" if language == "zh" else "en"
    same = (text for text in descriptions if detect_language(text) == wanted)
    text = next(same, None) or next(iter(descriptions), capability)
    return text if len(text) <= DESCRIPTION_CHARACTERS else text[: DESCRIPTION_CHARACTERS - 1] + "…"


def options_document(options: Sequence[DescribedOption]) -> dict[str, object]:
    """What the task keeps of its options, in the place of an agent's data."""
    return {"options": [asdict(option) for option in options]}


def read_options(document: Mapping[str, Any] | None) -> tuple[DescribedOption, ...]:
    """The options that a task keeps."""
    rows = (document or {}).get("options") or ()
    return tuple(
        DescribedOption(
            capability=Capability(row["capability"]),
            description=row["description"],
            similarity=row["similarity"],
        )
        for row in rows
    )
