"""Which option of a question a message chooses (pure)."""

from collections.abc import Sequence

from dispatcher.dispatch.lifecycle.session import Question
from dispatcher.identifiers import Capability
from dispatcher.intents.option_reply import is_choice, meant_option, named_option
from dispatcher.routing.ambiguity import near_options
from dispatcher.routing.ranking import Ranking
from dispatcher.routing.rules import ClarifyRules


def chosen_option(
    question: Question, message: str, ranking: Ranking, rules: ClarifyRules, *, has_entities: bool
) -> tuple[Capability, float] | None:
    """The option that the message names or clearly ranks to, with its similarity; None for any other one.

    One that brings entities of its own is understood by itself: it may well be a new wish.
    """
    names = [capability for capability, _ in question.options]
    place = named_option(message, names)
    if place is None and not has_entities:
        place = meant_option(message, _near(ranking, rules), names)
    return None if place is None else question.options[place]


def reads_as_choice(question: Question, message: str) -> bool:
    """Whether the message reads like a reply to the question's options, though it may choose none of them."""
    return bool(question.options) and is_choice(message, [capability for capability, _ in question.options])


def _near(ranking: Ranking, rules: ClarifyRules) -> Sequence[Capability]:
    """What the message may mean; none where it is out of scope."""
    if not ranking.in_scope:
        return ()
    near = near_options(ranking, rules, lambda _: True, frozenset())
    return [one.capability for one in near or ranking.capabilities[:1]]
