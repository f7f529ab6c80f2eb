"""`dispatcher replay`: stored decisions, decided again under other terms."""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace

from dispatcher.assembly.storage import open_storage
from dispatcher.cli.history import entries
from dispatcher.cli.replay_options import ReplayOptions
from dispatcher.cli.streamed import consumed
from dispatcher.cli.terminal import folding_table, terminal, warn
from dispatcher.errors import ConfigurationError
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.decision import Weights
from dispatcher.settings import Settings, load_settings
from dispatcher.store.calibrations import SqlCalibrations
from dispatcher.tuning.decisions.comparison import Change, Comparison, Expectation, compare, where
from dispatcher.tuning.decisions.decision_log import Entry, read_entries
from dispatcher.tuning.decisions.replay import Terms
from dispatcher.tuning.decisions.terms import change_terms

SHOWN = 20
"""Changed requests in the table."""
MOST = 10_000
"""Those that `--json` has, the first ones (some 20 MB); all are counted."""


async def replay(options: ReplayOptions) -> None:
    """Decide stored decisions again under changed terms and print what would have been different."""
    settings = load_settings(options.config)
    now = terms_of(settings)
    proposed = change_terms(now, options.changes or ())
    if options.calibration is not None:
        proposed = replace(proposed, calibration=await _calibration(settings, options.calibration))

    def compared_with(found: Iterable[Entry]) -> Comparison:
        return compare((entry.stored for entry in found), now, proposed, MOST)

    if options.source is not None:
        compared = compared_with(read_entries(options.source))
    else:
        async with entries(settings, (options.since, options.until)) as found:
            compared = await consumed(found, compared_with)
    if options.as_json:
        sys.stdout.write(json.dumps(_document(compared, proposed), ensure_ascii=False) + "\n")
    else:
        _print(compared)


async def _calibration(settings: Settings, number: int) -> Calibration:
    async with open_storage(settings) as database:
        stored = await SqlCalibrations(database).read(number)
    if stored is None:
        raise ConfigurationError(f"there is no calibration {number}")
    if stored.recorded.contrast != contrast_digest():
        raise ConfigurationError(
            f"calibration {number} was made by a version that measures scores in another way; fit it again"
        )
    return stored.named


def terms_of(settings: Settings) -> Terms:
    """The terms that a dispatcher with these settings decides with."""
    chosen = settings.routing
    return Terms(
        weights=Weights(similarity=chosen.similarity, success=chosen.success, headroom=chosen.headroom),
        similarity_floor=chosen.floor,
        composite_floor=chosen.floor,
    )


def _document(compared: Comparison, proposed: Terms) -> dict[str, object]:
    return {
        "decisions": compared.decisions,
        "unexplained": compared.unexplained,
        "other_encoder": compared.other_encoder,
        "weights": asdict(proposed.weights),
        "floors": {
            "similarity": proposed.similarity_floor,
            "composite": proposed.composite_floor,
            "scope": proposed.scope_floor,
        },
        "counts": {change.value: compared.counts.get(change, 0) for change in Change},
        "moves": [{"from": one, "to": other, "count": count} for (one, other), count in _most(compared)],
        "before": asdict(compared.before),
        "after": asdict(compared.after),
        "changed": [
            {
                "request_id": row.stored.request_id,
                "position": row.stored.position,
                "text": row.stored.decision.text,
                "change": row.change.value,
                "from": where(row.before),
                "to": where(row.after),
            }
            for row in compared.changed
        ],
        "changed_left_out": compared.different - len(compared.changed),
    }


def _print(compared: Comparison) -> None:
    console = terminal()
    counts = ", ".join(f"{count} {change}" for change, count in sorted(compared.counts.items()))
    console.print(f"{compared.decisions} decisions: {counts or 'none'}")
    if compared.unexplained:
        warn(f"{compared.unexplained} decisions don't come out as recorded under their own terms; left out")
    if compared.other_encoder:
        warn(f"{compared.other_encoder} decisions are of another encoder than the calibration; left out")
    moves = folding_table("from", "to", "requests")
    for (one, other), count in _most(compared):
        moves.add_row(one, other, str(count))
    if moves.row_count:
        console.print(moves)
    console.print(f"before: {_expected(compared.before)}\nafter:  {_expected(compared.after)}")
    rows = folding_table("request", "part", "text", "from", "to")
    for row in compared.changed[:SHOWN]:
        rows.add_row(
            row.stored.request_id,
            str(row.stored.position),
            row.stored.decision.text,
            where(row.before),
            where(row.after),
        )
    if rows.row_count:
        console.print(rows)
    if compared.different > SHOWN:
        kept = "them" if len(compared.changed) == compared.different else f"the first {MOST}"
        console.print(f"… and {compared.different - SHOWN} more; --json has {kept}")


def _most(compared: Comparison) -> list[tuple[tuple[str, str], int]]:
    return Counter(compared.moves).most_common()


def _expected(expectation: Expectation) -> str:
    if expectation.success is None or expectation.load is None:
        return "nobody was chosen"
    chosen = f"{expectation.chosen} chosen"
    return f"{chosen}, expected success {expectation.success:.3f}, load {expectation.load:.3f}"
