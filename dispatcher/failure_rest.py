"""A rest after failures in a row: who is gone must not cost every call its timeout (pure)."""

from dataclasses import dataclass, replace
from math import inf


@dataclass(frozen=True, slots=True, kw_only=True)
class RestRules:
    """After `failures` failed calls in a row nothing is asked for `rest_s` seconds.

    The next call tries again: one more failure is another rest.
    """

    failures: int = 5
    rest_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Failed calls in a row, and until when nothing is asked, in monotonic seconds."""

    failures: int = 0
    until: float = -inf


def after_failure(rest: Rest, rules: RestRules, now: float) -> Rest:
    """What is known once a call has failed."""
    failures = rest.failures + 1
    return Rest(failures=failures, until=now + rules.rest_s if failures >= rules.failures else rest.until)


def after_success(rest: Rest) -> Rest:
    """What is known once a call has succeeded; a rest that calls beside it began goes on."""
    return replace(rest, failures=0)
