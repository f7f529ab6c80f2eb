"""Which rows both sides are timed with."""

from collections.abc import Sequence

from tests.comparison.material import Row

TIMED = 200
"""Decisions of one round that are timed, at most."""
WARM = 20
"""Decisions before those."""


def sample(rows: Sequence[Row]) -> list[str]:
    """Distinct texts, evenly spread over the rows."""
    texts = list(dict.fromkeys(row.text for row in rows))
    wanted = min(len(texts), TIMED + WARM)
    return [texts[at * len(texts) // wanted] for at in range(wanted)]
