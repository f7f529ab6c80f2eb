"""Texts scored by the product's own ranking over what is registered, in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from dispatcher.errors import UnavailableError
from dispatcher.registry.agent import Agent
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.reference import load_reference
from dispatcher.routing.router import Ranking, Router
from dispatcher.tuning.basis.fleet import live_view
from dispatcher.tuning.basis.product import Product, synced_router
from dispatcher.tuning.basis.ranked import rank_all
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.fitting.calibration_fit import Ground
from dispatcher.tuning.fitting.calibration_rows import Scored, Twins, widened


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRegistry:
    """What self-calibration gives for a registry, and the router that ranks in it."""

    router: Router
    own: Calibration
    ground: Ground

    async def score(self, rows: Sequence[RequestRow]) -> list[Scored]:
        """The rows as the product ranks them, in order; raises as an encoder does."""
        return [_scored(*pair, self.own.twins) async for pair in rank_all(self.router, rows)]


async def scored_registry(
    product: Product, encoder: BatchingEncoder, agents: Sequence[Agent], version: int
) -> ScoredRegistry:
    """Calibrate a registry by itself, as a dispatcher does that has stored nothing."""
    router = await synced_router(product, encoder, live_view(agents), version)
    fitted = router.fitted
    if fitted is None or fitted.newest is None or fitted.observed is None:
        raise UnavailableError("the registry could not be calibrated")
    own = fitted.newest
    ground = Ground(
        encoder_id=own.encoder_id,
        registry_version=own.registry_version,
        capabilities=len({one.name for agent in agents for one in agent.declaration.capabilities}),
        observed=fitted.observed,
        reference=load_reference(encoder.encoder_id),
        similarity_floor=product.rules.similarity_floor,
    )
    return ScoredRegistry(router=router, own=own, ground=ground)


def _scored(row: RequestRow, ranking: Ranking, twins: Twins) -> Scored:
    winner = ranking.winner
    return Scored(
        wanted=widened(row.wanted, twins),
        winner=winner.capability if winner else None,
        score=ranking.scope_score,
    )
