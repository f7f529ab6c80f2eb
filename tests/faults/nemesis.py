"""Several faults in random order against one fleet."""

import random
from collections.abc import Awaitable, Callable, Sequence

from tests.faults.fleet import AGENTS
from tests.faults.trial import Trial

PAUSE_S = 1.5
HELD_S = 2.0
LEAST = 4


async def run_nemesis(trial: Trial, seconds: float, seed: int) -> Sequence[str]:
    """Break one thing after the other for so long, and `LEAST` however slow that is; their names in order.

    Every fault comes once before any comes again.
    """
    chance = random.Random(seed)
    until = trial.clock.monotonic() + seconds
    ahead: list[str] = []
    broken: list[str] = []
    while trial.clock.monotonic() < until or len(broken) < LEAST:
        ahead = ahead or chance.sample(sorted(FAULTS), len(FAULTS))
        broken.append(ahead.pop())
        await FAULTS[broken[-1]](trial, chance)
        await trial.clock.sleep(chance.uniform(0.5, 1.5) * PAUSE_S)
    trial.heal()
    return broken


async def _kill_gateway(trial: Trial, chance: random.Random) -> None:
    number = chance.randrange(2)
    trial.fleet.kill_gateway(number)
    await trial.clock.sleep(chance.uniform(0, 1))
    await trial.fleet.start_gateway(number)


async def _kill_agent(trial: Trial, chance: random.Random) -> None:
    name = chance.choice(AGENTS)
    trial.fleet.kill_agent(name)
    await trial.clock.sleep(chance.uniform(0, 1))
    await trial.fleet.start_agent(name)


async def _cut_gateways(trial: Trial, _: random.Random) -> None:
    trial.fleet.wires.gateway_broker.cut()


async def _cut_agent(trial: Trial, chance: random.Random) -> None:
    trial.fleet.wires.agent_broker[chance.choice(AGENTS)].cut()


async def _hold_agent(trial: Trial, chance: random.Random) -> None:
    wire = trial.fleet.wires.agent_broker[chance.choice(AGENTS)]
    wire.hold()
    await trial.clock.sleep(HELD_S)
    wire.resume()


async def _cut_database(trial: Trial, _: random.Random) -> None:
    trial.fleet.wires.database.cut()


FAULTS: dict[str, Callable[[Trial, random.Random], Awaitable[None]]] = {
    "agent killed": _kill_agent,
    "agent's broker connections cut": _cut_agent,
    "agent's broker connections half-open for a while": _hold_agent,
    "database connections cut": _cut_database,
    "gateway killed": _kill_gateway,
    "gateways' broker connections cut": _cut_gateways,
}
