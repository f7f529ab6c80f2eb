"""What understands messages: the rules, and a language model's advice where one is configured."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from dispatcher.assembly.parts import Parts
from dispatcher.assembly.rules import clarify_rules
from dispatcher.dispatch.planning import Planner
from dispatcher.dispatch.standing import standing_of
from dispatcher.dispatch.ties import Ties
from dispatcher.identifiers import Capability
from dispatcher.intents.chat_completions import ChatCompletions, ChatRules
from dispatcher.intents.decompose import RuleDecomposer
from dispatcher.intents.doubt import DoubtRules, Standing
from dispatcher.intents.language_model import LanguageModel
from dispatcher.intents.llm_decomposer import LlmDecomposer
from dispatcher.intents.llm_tie_breaker import LlmTieBreaker
from dispatcher.intents.model_budget import BudgetRules, ModelBudget
from dispatcher.intents.plan import Decomposer
from dispatcher.intents.segment import DecomposeRules
from dispatcher.llm_settings import LlmSettings
from dispatcher.registry.view import LiveView

DESCRIPTION_CHARACTERS = 200
"""Of a capability, as a language model is told of it."""


@asynccontextmanager
async def open_planner(parts: Parts) -> AsyncIterator[Planner]:
    """The planner, with its connections to a language model if there is one; leaving closes them.

    Raises ConfigurationError where the key fits no header.
    """
    chosen = parts.settings.llm
    if not chosen.url:
        yield _planner(parts, RuleDecomposer(DecomposeRules()), None)
        return
    model = ChatCompletions(_chat_rules(chosen), ModelBudget(_budget_rules(chosen), parts.clock))
    async with model.opened():
        yield _advised(parts, DecomposeRules(), model, DoubtRules(margin=chosen.margin))


def _advised(parts: Parts, splitting: DecomposeRules, model: LanguageModel, rules: DoubtRules) -> Planner:
    async def stand(texts: Sequence[str]) -> Sequence[Standing]:
        return [standing_of(ranking, rules.offers) for ranking in await parts.router.rank(texts)]

    def describe(capability: Capability) -> str:
        return description(parts.view, capability)

    decomposer = LlmDecomposer(
        ruled=RuleDecomposer(splitting),
        model=model,
        stand=stand,
        describe=describe,
        rules=rules,
        ranked_characters=splitting.ranked_characters,
    )
    ties = Ties(breaker=LlmTieBreaker(model=model), describe=describe, rules=rules)
    return _planner(parts, decomposer, ties)


def _planner(parts: Parts, decomposer: Decomposer, ties: Ties | None) -> Planner:
    return Planner(
        decomposer=decomposer,
        router=parts.router,
        contracts=lambda: parts.registrar.contracts,
        calendar=parts.clock,
        ties=ties,
        clarify=clarify_rules(parts.settings),
        semantic_bar=parts.settings.routing.semantic_bar,
    )


def description(view: LiveView, capability: Capability) -> str:
    """The first agent's words for a capability, cut; empty where nobody declares it any more."""
    for agent in view.group(capability):
        if declared := agent.capability(capability):
            return " / ".join(declared.descriptions)[:DESCRIPTION_CHARACTERS]
    return ""


def _chat_rules(chosen: LlmSettings) -> ChatRules:
    return ChatRules(
        url=chosen.url,
        model=chosen.model,
        key=chosen.key.get_secret_value(),
        timeout_s=chosen.timeout_s,
        max_tokens=chosen.max_tokens,
    )


def _budget_rules(chosen: LlmSettings) -> BudgetRules:
    return BudgetRules(calls=chosen.calls, tokens_per_minute=chosen.tokens_per_minute)
