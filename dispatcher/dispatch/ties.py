"""Which of near capabilities a piece asks for, where rules can't tell: between ranking and intent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dispatcher.dispatch.standing import of_piece, standing_of, with_choice
from dispatcher.identifiers import Capability
from dispatcher.intents.choice_advice import Tie
from dispatcher.intents.doubt import DoubtRules, choice_doubt, within_reach
from dispatcher.intents.language_model import Offer
from dispatcher.intents.llm_tie_breaker import TieBreaker
from dispatcher.intents.plan import Piece
from dispatcher.intents.reference import is_leaning
from dispatcher.routing.decision import Advice
from dispatcher.routing.ranking import Ranking


@dataclass(frozen=True, slots=True, kw_only=True)
class Ties:
    """Has ties broken, at most once a message. `describe` gives a capability's words for the question."""

    breaker: TieBreaker
    describe: Callable[[Capability], str]
    rules: DoubtRules

    async def settle(
        self, message: str, pieces: Sequence[Piece], rankings: Sequence[Ranking]
    ) -> tuple[Ranking, ...]:
        """The rankings by piece, with another winner where advice chose one; never raises for want of it.

        A capability that was suggested when the message was split counts as the answer, if the rules
        are unsure of the piece and it is among the nearest ones.
        """
        if len(message) > self.rules.longest:
            return tuple(rankings)
        own = [self._with_suggestion(*one) for one in zip(rankings, pieces, strict=True)]
        ties = {
            at: tie for at, ranking in enumerate(own) if (tie := self._tie(ranking, pieces[at])) is not None
        }
        if not ties:
            return tuple(own)
        choices = await self.breaker.choose(message, list(ties.values()))
        for at, capability in zip(ties, choices, strict=True):
            if capability is not None:
                own[at] = with_choice(own[at], capability)
        return tuple(own)

    def _with_suggestion(self, ranking: Ranking, piece: Piece) -> Ranking:
        noted = of_piece(ranking, piece)
        standing = standing_of(ranking, self.rules.offers)
        is_unsure = choice_doubt(standing, self.rules) is not None or is_leaning(piece.text)
        suggested = next((one for one in standing.near if one.capability == piece.suggested), None)
        return with_choice(noted, suggested.capability) if suggested and is_unsure else noted

    def _tie(self, ranking: Ranking, piece: Piece) -> Tie | None:
        """What to ask about a piece; None where nothing is to be asked, or was answered already."""
        standing = standing_of(ranking, self.rules.offers)
        if Advice.CHOICE in ranking.advice or choice_doubt(standing, self.rules) is None:
            return None
        near = within_reach(standing, self.rules)
        return Tie(
            text=piece.text,
            offers=tuple(Offer(capability=name, description=self.describe(name)) for name in near),
        )
