"""Texts scored by the product's own ranking over what is registered, in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from dispatcher.errors import UnavailableError
from dispatcher.registry.agent import Agent
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.fitting import Fitted
from dispatcher.routing.reference import load_reference
from dispatcher.routing.router import Ranking, Router
from dispatcher.tuning.basis.fleet import live_view
from dispatcher.tuning.basis.product import Product
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.fitting.calibration_fit import Ground
from dispatcher.tuning.fitting.calibration_rows import Scored

BATCH = 64
"""Texts that are ranked at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRegistry:
    """What self-calibration gives for a registry, and the router that ranks in it."""

    router: Router
    own: Calibration
    ground: Ground

    async def score(self, rows: Sequence[RequestRow]) -> list[Scored]:
        """The rows as the product ranks them, in order; raises as an encoder does."""
        scored: list[Scored] = []
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            rankings = await self.router.rank([row.text for row in batch])
            scored += map(_scored, batch, rankings)
        return scored


async def scored_registry(
    product: Product, encoder: BatchingEncoder, agents: Sequence[Agent], version: int
) -> ScoredRegistry:
    """Calibrate a registry by itself, as a dispatcher does that has stored nothing."""
    view = live_view(agents)
    router = Router(
        encoder=encoder,
        directory=view,
        make_index=product.make_index,
        rules=product.rules,
        clock=product.clock,
    )
    await router.sync(view.agents(), version)
    fitted = router.fitted
    if fitted is None or fitted.newest is None or fitted.observed is None:
        raise UnavailableError("the registry could not be calibrated")
    return ScoredRegistry(
        router=router,
        own=fitted.newest,
        ground=_ground(fitted, encoder, agents, product.rules.similarity_floor),
    )


def _ground(
    fitted: Fitted, encoder: BatchingEncoder, agents: Sequence[Agent], similarity_floor: float
) -> Ground:
    own = fitted.newest or fitted.used
    if fitted.observed is None:
        raise UnavailableError("the registry could not be calibrated")
    return Ground(
        encoder_id=own.encoder_id,
        registry_version=own.registry_version,
        capabilities=len({one.name for agent in agents for one in agent.declaration.capabilities}),
        observed=fitted.observed,
        reference=load_reference(encoder.encoder_id),
        similarity_floor=similarity_floor,
    )


def _scored(row: RequestRow, ranking: Ranking) -> Scored:
    winner = ranking.winner
    return Scored(wanted=row.wanted, winner=winner.capability if winner else None, score=ranking.scope_score)
