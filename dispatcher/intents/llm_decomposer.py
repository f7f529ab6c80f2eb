"""A decomposer that asks a language model where the rules are unsure, and follows them elsewhere."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dispatcher.errors import UnavailableError
from dispatcher.identifiers import Capability
from dispatcher.intents.antecedent import with_antecedents
from dispatcher.intents.decompose import shortened
from dispatcher.intents.doubt import DoubtRules, Standing, split_doubt
from dispatcher.intents.language_model import LanguageModel, Offer
from dispatcher.intents.plan import Decomposer, Piece, Rank
from dispatcher.intents.split_advice import read_pieces, split_prompt
from dispatcher.records import replace
from dispatcher.traditional import simplified

logger = logging.getLogger(__name__)

MAX_OFFERS = 20
"""Capabilities that a prompt lists, of all pieces together; each costs some fifty tokens."""

Stand = Callable[[Sequence[str]], Awaitable[Sequence[Standing]]]
"""How each text ranks, in order."""
Describe = Callable[[Capability], str]
"""A registered capability in its developer's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDecomposer:
    """Implements `plan.Decomposer`. `ruled` splits every message; whatever fails afterwards, that stands."""

    ruled: Decomposer
    model: LanguageModel
    stand: Stand
    describe: Describe
    rules: DoubtRules
    ranked_characters: int
    """See `segment.DecomposeRules`."""

    async def split(self, message: str, rank: Rank) -> tuple[Piece, ...]:
        """See `plan.Decomposer`; errors of `rank` and of `stand` pass through."""
        pieces = await self.ruled.split(message, rank)
        if len(message) > self.rules.longest:
            return pieces
        standings = await self.stand([piece.ranked for piece in pieces])
        doubt = split_doubt(pieces, standings, self.rules)
        if doubt is None:
            return pieces
        offers = self._offers(standings)
        facts = {"part": "split", "doubt": doubt.value}
        try:
            reply = await self.model.ask(split_prompt(message, offers))
            advised = read_pieces(reply, message, pieces, [offer.capability for offer in offers])
        except UnavailableError as error:
            logger.info("llm.not_followed", extra={**facts, "reason": error.message})
            return pieces
        logger.info("llm.followed", extra={**facts, "pieces": len(advised), "by_rules": len(pieces)})
        return with_antecedents(message, [self._prepared(piece) for piece in advised])

    def _prepared(self, piece: Piece) -> Piece:
        """The piece with the text that it is ranked by, as the rules have it."""
        asked = shortened(simplified(piece.text), self.ranked_characters)
        return replace(piece, asked=None if asked == piece.text else asked)

    def _offers(self, standings: Sequence[Standing]) -> tuple[Offer, ...]:
        """The nearest capabilities of all pieces: the best of each first."""
        near = [
            (place, at, one.capability)
            for at, standing in enumerate(standings)
            for place, one in enumerate(standing.near[: self.rules.offers])
        ]
        names = dict.fromkeys(name for _, _, name in sorted(near))
        return tuple(
            Offer(capability=name, description=self.describe(name)) for name in list(names)[:MAX_OFFERS]
        )
