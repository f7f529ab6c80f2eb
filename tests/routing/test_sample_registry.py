"""The sample agents accept their own requests of the evaluation data and refuse what nobody is for."""

from itertools import chain, combinations

import pytest

from agents.faq.agent import agent as faq
from agents.logistics.agent import agent as logistics
from agents.order.agent import agent as order
from agents.promotion.agent import agent as promotion
from dispatcher.identifiers import AgentId
from dispatcher.registry.agent import Agent

LABELS = {
    "order.query": "order_query",
    "logistics.track": "logistics_track",
    "promotion.quote": "promo_calc",
}
"""What the evaluation data calls the capabilities; it has no rows for faq.answer."""
TWIN = ".twin"


def _registered(sample, *, suffix="", twin="") -> Agent:
    declaration = sample.declaration()
    renamed = [one.model_copy(update={"name": one.name + twin}) for one in declaration.capabilities]
    return Agent(
        agent_id=AgentId(sample.agent_id + suffix),
        declaration=declaration.model_copy(update={"capabilities": renamed}),
        digest=f"{suffix}{twin}",
        environment="production",
    )


SAMPLES = (order, promotion, faq, logistics)
ALL = [_registered(sample) for sample in SAMPLES]
REGISTRIES = {
    "all agents": ALL,
    "two agents of each capability": [*ALL, *(_registered(one, suffix="-b") for one in SAMPLES)],
    "a twin under another tag": [*ALL, _registered(order, suffix="-t", twin=TWIN)],
    "twins of all": [*ALL, *(_registered(one, suffix="-t", twin=TWIN) for one in SAMPLES)],
} | {
    " and ".join(agent.agent_id for agent in some): list(some)
    for some in chain(combinations(ALL, 1), combinations(ALL, 2))
}


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=REGISTRIES.keys())
async def test_it_accepts_its_own_requests_and_refuses_the_rest(registry, router_of, multilingual, rows):
    router = router_of(encoder=multilingual)
    await router.sync(registry, 1)
    names = {one.name for agent in registry for one in agent.declaration.capabilities}
    wanted = {label for name, label in LABELS.items() if name in names}
    evaluated = rows("shopdesk/eval.jsonl")
    own = [row["text"] for row in evaluated if set(row["agents"]) & wanted]
    nobodys = [row["text"] for row in evaluated if not row["agents"]]

    accepted = [ranking.in_scope for ranking in await router.rank(own)]
    strangers = [ranking.in_scope for ranking in await router.rank(nobodys)]

    assert sum(accepted) >= 0.9 * len(own)
    assert sum(strangers) <= 0.1 * len(nobodys)
