"""The loops that go on as long as the dispatcher runs."""

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from dispatcher.assembly import rules
from dispatcher.assembly.parts import Parts
from dispatcher.dispatch.relay import Relay
from dispatcher.dispatch.sweep import Steadiness, Sweep
from dispatcher.observe.supervise import every

REFRESH_S = 1.0
"""How old a replica's copy of keys, grants, loads, the registry and what calibration is in force may be."""

CLEAR_S = 86_400.0
"""Leases of instances silent for a day are ended, looked at once a day."""


def loops(parts: Parts) -> Sequence[Coroutine[Any, Any, None]]:
    """All loops, not yet running."""
    clock, delivery, liveness = parts.clock, parts.settings.delivery, parts.settings.liveness
    sweep = sweep_of(parts)
    relay = Relay(
        outbox=parts.books.outbox,
        books=parts.books,
        channel=parts.channel,
        assigner=parts.assigner,
        capacities=parts.view,
        grants=parts.access.grants,
        clock=clock,
        rules=rules.relay_rules(parts.settings),
    )
    return (
        relay.run(),
        every(clock, delivery.look_every_s, "sweep", sweep.look),
        every(clock, liveness.heartbeat_s, "reconcile", sweep.reconcile),
        every(clock, REFRESH_S, "access", parts.access.refresh),
        every(clock, REFRESH_S, "loads", partial(refresh_loads, parts)),
        every(clock, 0, "registry", partial(_refresh_registry, parts)),
        every(clock, REFRESH_S, "calibrations", parts.calibrations.book.look),
        every(clock, liveness.heartbeat_s, "signs_of_life", parts.registrar.record_signs_of_life),
        every(clock, REFRESH_S, "people", parts.people.publish),
        every(clock, CLEAR_S, "dead_leases", partial(parts.registrar.clear_dead, CLEAR_S)),
        every(clock, liveness.offline_after_s, "outcomes", partial(_refresh_outcomes, parts)),
    )


def sweep_of(parts: Parts) -> Sweep:
    """What ends the overdue and finds the lost."""
    return Sweep(
        books=parts.books,
        assigner=parts.assigner,
        agents=parts.view,
        lost_after_s=2 * parts.settings.liveness.heartbeat_s,
        steadiness=Steadiness(parts.clock, parts.settings.delivery.lease_s),
    )


async def refresh_loads(parts: Parts) -> None:
    """Count what is open at agents and waits for people; also tells whether the ledger answers."""
    async with parts.signals.ledger.watching():
        parts.view.begin_count()
        parts.view.set_open(await parts.ledger.open_attempts())
        await parts.people.count()


async def _refresh_registry(parts: Parts) -> None:
    changed = parts.signals.registry_changed
    try:
        async with asyncio.timeout(REFRESH_S):
            await changed.wait()
    except TimeoutError:
        pass
    changed.clear()
    await parts.registrar.refresh()


async def _refresh_outcomes(parts: Parts) -> None:
    half_life_s = parts.settings.liveness.success_half_life_s
    parts.view.seed_outcomes(await parts.ledger.outcome_counts(half_life_s))
