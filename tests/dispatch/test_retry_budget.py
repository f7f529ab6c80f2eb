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


@pytest.fixture
def clock() -> Hands:
    return Hands()


def test_a_burst_is_free_and_then_tokens_come_every_300_ms(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(burst=3, floor=100), clock)

    delays = [budget.delay_ms(SHOP, ORDER) for _ in range(6)]

    assert delays == [0, 0, 0, 300, 600, 900]


def test_callers_and_agents_have_buckets_of_their_own(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(burst=1, floor=100), clock)
    budget.delay_ms(SHOP, ORDER)

    assert budget.delay_ms(SHOP, ORDER) == 300
    assert budget.delay_ms(CallerId("other"), ORDER) == 0
    assert budget.delay_ms(SHOP, AgentId("faq")) == 0


def test_a_bucket_fills_again(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(burst=2, floor=100), clock)
    for _ in range(2):
        budget.delay_ms(SHOP, ORDER)
    clock.now += 0.6

    assert [budget.delay_ms(SHOP, ORDER) for _ in range(3)] == [0, 0, 300]


@pytest.mark.parametrize("firsts", [0, 100, 1_000])
def test_no_window_holds_more_than_a_fifth_of_the_first_attempts_and_the_floor(
    clock: Hands, firsts: int
) -> None:
    rules = RetryRules(burst=10_000, floor=5)
    budget = RetryBudget(rules, clock)
    for _ in range(firsts):
        budget.count_first()
    allowed = 5 + firsts // 5

    delays = [budget.delay_ms(SHOP, ORDER) for _ in range(3 * allowed)]

    times = [delay for delay in delays if delay is not None]
    busiest = max(sum(t <= other < t + 10_000 for other in times) for t in times)
    assert busiest == allowed
    assert len(times) == len(delays)


def test_first_attempts_older_than_the_window_earn_nothing(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(floor=1, burst=100), clock)
    for _ in range(100):
        budget.count_first()
    clock.now += 20

    assert [budget.delay_ms(SHOP, ORDER) for _ in range(2)] == [0, 10_000]


def test_what_would_wait_too_long_is_not_tried_again(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(burst=1, floor=1_000, every_s=40, horizon_s=60), clock)

    assert [budget.delay_ms(SHOP, ORDER) for _ in range(4)] == [0, 40_000, None, None]


def test_of_too_many_buckets_the_oldest_is_forgotten(clock: Hands) -> None:
    budget = RetryBudget(RetryRules(burst=1, floor=1_000, buckets=2), clock)
    budget.delay_ms(SHOP, ORDER)
    for name in ("b", "c"):
        budget.delay_ms(SHOP, AgentId(name))

    assert budget.delay_ms(SHOP, AgentId("c")) == 300
    assert budget.delay_ms(SHOP, ORDER) == 0
