"""Asking a language model which of near capabilities a text wants, and what of its reply counts (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass

from dispatcher.errors import UnavailableError
from dispatcher.identifiers import Capability
from dispatcher.intents.language_model import DATA_ONLY, Offer, Prompt, closed_object, one_of

_SYSTEM = f"""You say which capability each of some texts asks for.
`message` is what somebody wrote in a chat, `texts` holds parts of it by number, with the capabilities
that may be meant. Reply with one object: for the number of each text the `name` of the capability that does
what this text asks for, in view of the whole message; null if none of those listed for it does.
{DATA_ONLY}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """A text between capabilities that the rules can't tell apart."""

    text: str
    offers: tuple[Offer, ...]


def choice_prompt(message: str, ties: Sequence[Tie]) -> Prompt:
    """One question for all ties of a message."""
    numbered = {str(number): tie for number, tie in enumerate(ties, start=1)}
    texts = {
        number: {"text": tie.text, "capabilities": [offer.to_json() for offer in tie.offers]}
        for number, tie in numbered.items()
    }
    return Prompt(
        name="choices",
        system=_SYSTEM,
        data={"message": message, "texts": texts},
        schema=closed_object({number: one_of(tie.offers) for number, tie in numbered.items()}),
    )


def read_choices(reply: object, ties: Sequence[Tie]) -> tuple[Capability | None, ...]:
    """The capability named for each tie, None where none fits.

    Raises UnavailableError where anything of the reply can't be used; nothing of it counts then.
    """
    numbers = [str(number) for number in range(1, len(ties) + 1)]
    if not isinstance(reply, dict) or reply.keys() != set(numbers):
        raise UnavailableError("the language model's reply has not the form that was asked for")
    return tuple(_chosen(reply[number], tie) for number, tie in zip(numbers, ties, strict=True))


def _chosen(name: object, tie: Tie) -> Capability | None:
    if name is None:
        return None
    for offer in tie.offers:
        if offer.capability == name:
            return offer.capability
    raise UnavailableError("the language model's reply names a capability that was not offered")
