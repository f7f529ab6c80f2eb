"""`dispatcher eval DATASET_DIR`: one data set through the product's own routing path."""

import random
from functools import partial
from typing import Any

import numpy as np

from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.tuning.basis.dataset import Dataset, unregistered
from dispatcher.tuning.basis.fleet import fleet
from dispatcher.tuning.basis.product import FreshRegistry, Product, encoding, register
from dispatcher.tuning.basis.ranked import rank_all
from dispatcher.tuning.evaluation.asking import Tell, intents_of, route_all, speed_figures
from dispatcher.tuning.evaluation.busy import REPLICAS, busy_figures, choose
from dispatcher.tuning.evaluation.document import described, provenance, rounded
from dispatcher.tuning.evaluation.routed import (
    Figures,
    confusions,
    grouped,
    message_figures,
    ranked_figures,
    served,
)

KEYS = (
    *("top1", "top3", "oos_auroc", "oos_rejected", "in_scope_lost", "ece", "overturned", "mean_load"),
    *("multi_exact", "multi_f1", "ms_p50", "ms_p95"),
    *("ece_in_scope", "top1_or_twin", "asked_back", "unavailable", "ms_two_p50", "ms_two_p95"),
)
"""The figures of a report, in the order shown."""


async def evaluate(dataset: Dataset, product: Product, *, seed: int, tell: Tell) -> dict[str, Any]:
    """All figures as one JSON document; see docs/tuning.md for what each means.

    Texts that are registered are not asked; `registered_texts` counts them.
    Raises RegistrationError where an agent could not register, and as an encoder does.
    """
    unseen = unregistered(dataset)
    with encoding(product, dataset.texts + 8 * len(dataset.agents)) as encoder:
        tell("registering agents", 0, len(dataset.agents))
        started = product.clock.monotonic()
        registry = await register(product, encoder, fleet(dataset.agents))
        about = _registered(registry, product.clock.monotonic() - started)
        tell("registering agents", len(dataset.agents), len(dataset.agents))
        speed = await speed_figures(registry, unseen, product.clock, seed)
        asked = await _asked(registry, unseen, seed, tell)
        busy = await _busy(unseen, product, encoder, seed, tell)
    figures = {name: value for name, value in asked.items() if name != "figures"}
    document = described(asked["figures"] | busy | speed, KEYS)
    return {
        "report": "eval",
        "dataset": dataset.name,
        **document,
        **figures,
        "registry": about,
        **provenance(dataset, unseen, product, seed),
    }


async def _asked(registry: FreshRegistry, dataset: Dataset, seed: int, tell: Tell) -> dict[str, Any]:
    requests, messages = dataset.requests, dataset.messages
    routed = await route_all(registry, requests, lambda done: tell("ranking requests", done, len(requests)))
    given = await intents_of(registry, messages, lambda done: tell("planning messages", done, len(messages)))
    chance = np.random.default_rng(seed)
    ranked = ranked_figures(routed, chance)
    return {
        "figures": ranked | message_figures(messages, [served(one) for one in given], chance),
        **grouped(routed),
        "confusions": confusions(routed),
    }


async def _busy(
    dataset: Dataset, product: Product, encoder: BatchingEncoder, seed: int, tell: Tell
) -> Figures:
    """With three replicas of each agent, all under random load."""
    rows = [row for row in dataset.requests if row.wanted]
    chance = random.Random(f"{seed} load")  # noqa: S311 - draws samples, keeps no secret
    report = partial(tell, "choosing replicas")
    registry = await register(product, encoder, fleet(dataset.agents, replicas=REPLICAS))
    pairs = rank_all(registry.router, rows, lambda done: report(done, len(rows)))
    choices = [choose(registry, ranking, row, chance) async for row, ranking in pairs]
    return busy_figures([one for one in choices if one is not None], np.random.default_rng(seed))


def _registered(registry: FreshRegistry, seconds: float) -> dict[str, Any]:
    used = registry.router.calibration
    return {
        "registered_s": round(seconds, 2),
        "calibration": used.kind if used else None,
        "scope_floor": rounded(used.floor) if used else None,
        "twins": sorted(map(sorted, used.twins)) if used else [],
    }
