"""A small run of the routing benchmark, for what it reports and not how fast."""

from dispatcher.bench.fleet import EACH, LARGEST, fleet, question
from dispatcher.bench.route import route


async def test_every_size_is_reported_with_all_steps_and_ratios():
    said: list[str] = []

    report = await route((10, 20), 1, "hashing", said.append)

    assert list(report["agents"]) == ["10", "20"]
    for point in report["agents"].values():
        assert set(point["steps"]) == {"flat_scan", "encoder_call", "decide", "text_known", "text_new"}
        assert all(figures["p50_ms"] <= figures["p95_ms"] for figures in point["steps"].values())
        assert None not in point["ratios"].values()
    assert said


def test_a_fleet_has_five_agents_of_each_capability_and_nobody_twice():
    agents = fleet(4 * EACH)

    assert len({agent.agent_id for agent in agents}) == 4 * EACH
    assert len({agent.declaration.capabilities[0].name for agent in agents}) == 4
    assert len(fleet(LARGEST + 1)) == LARGEST


def test_nobody_is_asked_with_a_text_that_is_declared():
    for agent in fleet(10):
        capability = agent.declaration.capabilities[0]
        assert question(agent) not in {*capability.descriptions, *capability.examples}
