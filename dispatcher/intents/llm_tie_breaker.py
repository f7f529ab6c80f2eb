"""Asks a language model which of near capabilities is meant."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dispatcher.errors import UnavailableError
from dispatcher.identifiers import Capability
from dispatcher.intents.choice_advice import Tie, choice_prompt, read_choices
from dispatcher.intents.language_model import LanguageModel

logger = logging.getLogger(__name__)


class TieBreaker(Protocol):
    """Chooses where the rules can't."""

    async def choose(self, message: str, ties: Sequence[Tie]) -> Sequence[Capability | None]:
        """One of the offered capabilities for each tie of a message; None leaves it to the rules."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmTieBreaker:
    """Implements `TieBreaker`: one call for all ties of a message; if it fails, all is left to the rules."""

    model: LanguageModel

    async def choose(self, message: str, ties: Sequence[Tie]) -> Sequence[Capability | None]:
        """See `TieBreaker`."""
        try:
            choices = read_choices(await self.model.ask(choice_prompt(message, ties)), ties)
        except UnavailableError as error:
            facts = {"part": "choice", "ties": len(ties), "reason": error.message}
            logger.info("llm.not_followed", extra=facts)
            return [None] * len(ties)
        chosen = sum(one is not None for one in choices)
        logger.info("llm.followed", extra={"part": "choice", "ties": len(ties), "chosen": chosen})
        return choices
