import pytest

from dispatcher.dispatch.retry_budget import RetryBudget, RetryRules
from dispatcher.identifiers import AgentId, CallerId

SHOP, ORDER = CallerId("shop"), AgentId("order")


class Hands:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def delay(
    budget: RetryBudget, agent: AgentId = ORDER, *, caller: CallerId = SHOP, within_ms: int = 1_000_000
) -> int | None:
    return budget.delay_ms(caller, agent, within_ms)


@pytest.fixture
def clock() -> Hands:
    return Hands()


def test_a_burst_is_free_and_then_tokens_come_every_300_ms(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(burst=3, floor=100), clock)

    delays = [delay(budget) for _ in range(6)]

    assert delays == [0, 0, 0, 300, 600, 900]


def test_callers_and_agents_have_buckets_of_their_own(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(burst=1, floor=100), clock)
    delay(budget)

    assert delay(budget) == 300
    assert delay(budget, caller=CallerId("other")) == 0
    assert delay(budget, AgentId("faq")) == 0


def test_a_bucket_fills_again(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(burst=2, floor=100), clock)
    for _ in range(2):
        delay(budget)
    clock.now += 0.6

    assert [delay(budget) for _ in range(3)] == [0, 0, 300]


@pytest.mark.parametrize("firsts", [0, 100, 1_000])
def test_no_window_holds_more_than_a_fifth_of_the_first_attempts_and_the_floor(
    clock: Hands, firsts: int
) -> None:
    rules = RetryRules(burst=10_000, floor=5)
    budget = RetryBudget(rules, clock)
    for _ in range(firsts):
        budget.count_first()
    allowed = 5 + firsts // 5

    delays = [delay(budget) for _ in range(3 * allowed)]

    times = [delay for delay in delays if delay is not None]
    busiest = max(sum(t <= other < t + 10_000 for other in times) for t in times)
    assert busiest == allowed
    assert len(times) == len(delays)


def test_first_attempts_older_than_the_window_earn_nothing(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(floor=1, burst=100), clock)
    for _ in range(100):
        budget.count_first()
    clock.now += 20

    assert [delay(budget) for _ in range(2)] == [0, 10_000]


def test_what_would_come_too_late_is_not_made_and_takes_nothing_from_others(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(burst=1, floor=2), clock)

    late = [delay(budget, within_ms=250) for _ in range(50)]

    assert late == [0] + [None] * 49
    assert delay(budget, AgentId("faq")) == 0


def test_of_too_many_buckets_the_oldest_is_forgotten(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(burst=1, floor=1_000, buckets=2), clock)
    delay(budget)
    for name in ("b", "c"):
        delay(budget, AgentId(name))

    assert delay(budget, AgentId("c")) == 300
    assert delay(budget) == 0
