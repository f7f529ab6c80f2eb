"""How much may be asked of a language model: calls at once, tokens a minute, and a rest after failures."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dispatcher.clock import Clock
from dispatcher.errors import UnavailableError
from dispatcher.failure_rest import Rest, RestRules, after_failure, after_success


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRules:
    """`calls` may run at once. A bucket of `tokens_per_minute` tokens refills at that rate.

    After `failures` failed calls in a row nothing is asked for `rest_s` seconds; see `failure_rest`.
    """

    calls: int = 4
    tokens_per_minute: int = 60_000
    failures: int = 5
    rest_s: float = 30.0


@dataclass(slots=True)
class Spending:
    """The tokens that one call costs: what was estimated until the endpoint says what it took."""

    tokens: int


class ModelBudget:
    """Counts in memory, for one replica. Nobody waits: what the budget does not allow is not asked."""

    def __init__(self, rules: BudgetRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        self._running = 0
        self._tokens = float(rules.tokens_per_minute)
        self._counted_at = clock.monotonic()
        self._rest_rules = RestRules(failures=rules.failures, rest_s=rules.rest_s)
        self._rest = Rest()

    @contextmanager
    def spending(self, tokens: int) -> Iterator[Spending]:
        """Take an estimate of `tokens` out of the bucket for the call inside the block.

        What the call cost less or more by the end is settled then. Raises UnavailableError, with nothing
        taken, where the budget does not allow the call; one raised inside the block counts as a failure.
        """
        self._refill()
        self._check(tokens)
        self._running += 1
        self._tokens -= tokens
        spent = Spending(tokens)
        try:
            yield spent
            self._rest = after_success(self._rest)
        except UnavailableError:
            self._rest = after_failure(self._rest, self._rest_rules, self._clock.monotonic())
            raise
        finally:
            self._running -= 1
            cost = min(max(spent.tokens, 0), self._rules.tokens_per_minute)
            self._tokens = min(self._tokens + tokens - cost, float(self._rules.tokens_per_minute))

    def _check(self, tokens: int) -> None:
        if self._clock.monotonic() < self._rest.until:
            raise UnavailableError("the language model failed several times in a row, and is left alone")
        if self._running >= self._rules.calls:
            raise UnavailableError("so many calls of the language model run already")
        if tokens > self._tokens:
            raise UnavailableError("the language model's tokens of this minute are used up")

    def _refill(self) -> None:
        now = self._clock.monotonic()
        gained = (now - self._counted_at) / 60 * self._rules.tokens_per_minute
        self._tokens = min(self._tokens + gained, float(self._rules.tokens_per_minute))
        self._counted_at = now
