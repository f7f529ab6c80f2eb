"""Commands on stored calibrations."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import orjson

from dispatcher.assembly.encoders import embedding
from dispatcher.assembly.storage import open_storage
from dispatcher.cli.history import entries
from dispatcher.cli.streamed import consumed
from dispatcher.cli.terminal import folding_table, terminal
from dispatcher.errors import ConfigurationError
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.calibration_record import calibration_document
from dispatcher.routing.stored_calibration import (
    LISTED,
    InUse,
    State,
    Stored,
    Unreadable,
    Wanted,
    brief,
)
from dispatcher.settings import Settings, load_settings
from dispatcher.store.calibrations import SqlCalibrations
from dispatcher.tuning.decisions.decision_log import Entry
from dispatcher.tuning.decisions.replay import StoredDecision
from dispatcher.tuning.decisions.shadow_log import Differing, ShadowComparison, compare_shadows

SHOWN = 20
"""Differing decisions in the table."""
MOST = 10_000
"""Those that `--json` has of either kind, the first ones; all are counted."""
BY = "command line"


async def show_all(config: Path | None, *, as_json: bool) -> None:
    """Print the newest calibrations, newest first."""
    async with open_storage(load_settings(config)) as database:
        found = await SqlCalibrations(database).list(LISTED)
    if as_json:
        print_json({"calibrations": [brief(one) for one in found]})
        return
    table = folding_table("number", "state", "origin", "scope floor", "registry", "encoder", "made", "by")
    for one in found:
        table.add_row(*_row(one))
    terminal().print(table)


async def show_one(config: Path | None, number: int) -> None:
    """Print one with its report."""
    async with open_storage(load_settings(config)) as database:
        found = await SqlCalibrations(database).read(number)
    if found is None:
        raise ConfigurationError(f"there is no calibration {number}")
    whole = {"report": found.report, "document": calibration_document(found.recorded)}
    terminal().print_json(data={**brief(found), **whole}, ensure_ascii=False)


async def change(config: Path | None, number: int, state: str) -> None:
    """Put a calibration into a state; one for another encoder than the settings name is refused."""
    settings, wanted = load_settings(config), Wanted(number=number, state=State(state), by=BY)
    async with open_storage(settings) as database:
        changed = await SqlCalibrations(database).change(wanted, in_use(settings, wanted.state))
    terminal().print(f"{changed.number} is {changed.state}")


async def compare(config: Path | None, *, period: tuple[str, str], as_json: bool) -> None:
    """Print what calibrations in shadow would have decided otherwise."""
    async with entries(load_settings(config), period) as found:
        total, compared = await consumed(found, _compared)
    if as_json:
        print_json({"decisions": total, "shadows": [asdict(one) for one in compared]})
    else:
        _print(total, compared)


def in_use(settings: Settings, wanted: State) -> InUse:
    """The settings' encoder; not loaded where it does not matter."""
    if wanted is State.RETIRED:
        return InUse(encoder_id="", contrast=contrast_digest())
    with embedding(settings.encoder) as embedder:
        return InUse(encoder_id=embedder.encoder_id, contrast=contrast_digest())


def print_json(document: object) -> None:
    """One object on one line."""
    sys.stdout.write(orjson.dumps(document, default=dict).decode() + "\n")


def _compared(entries: Iterator[Entry]) -> tuple[int, list[ShadowComparison]]:
    """How many decisions there were, and what came of them."""
    total = 0

    def counted() -> Iterator[StoredDecision]:
        nonlocal total
        for entry in entries:
            total += 1
            yield entry.stored

    compared = compare_shadows(counted(), MOST)
    return total, compared


def _row(one: Stored | Unreadable) -> Sequence[str]:
    state = f"{one.state}, held" if one.held and one.state is State.IN_FORCE else str(one.state)
    kind, floor, registry = one.origin, "unreadable", ""
    if isinstance(one, Stored):
        made = one.recorded.calibration
        kind, floor, registry = made.kind, f"{made.floor:.3f}", str(made.registry_version)
    made_by = (moment(one.created_ms), one.made_by)
    return (str(one.number), state, kind, floor, registry, one.encoder_id, *made_by)


def _print(decisions: int, compared: Sequence[ShadowComparison]) -> None:
    console = terminal()
    if not compared:
        console.print(f"{decisions} decisions, none with a calibration in shadow")
    for one in compared:
        differing = one.refused_count + one.accepted_count
        console.print(
            f"calibration {one.number} was in shadow for {one.decisions} decisions, "
            f"{moment(one.since_ms)} to {moment(one.until_ms)}: {differing} differ; "
            f"it would have refused {one.refused_count} and accepted {one.accepted_count}; "
            f"its similarity is {one.similarity:+.3f} on average"
        )
        table = folding_table(
            "request", "part", "capability", "score", "floor", "its floor", "it says", "text"
        )
        rows = [("refuse", row) for row in one.refused] + [("accept", row) for row in one.accepted]
        for said, row in rows[:SHOWN]:
            table.add_row(*_cells(said, row))
        if table.row_count:
            console.print(table)
        if differing > SHOWN:
            kept = "them" if len(rows) == differing else f"the first {MOST} of either kind"
            console.print(f"… and {differing - SHOWN} more; --json has {kept}")


def _cells(said: str, row: Differing) -> Sequence[str]:
    return (
        row.request_id,
        str(row.position),
        row.capability or "",
        f"{row.scope_score:.3f}",
        f"{row.scope_floor:.3f}",
        f"{row.shadow.scope_floor:.3f}",
        said,
        row.text,
    )


def moment(ms: int) -> str:
    """A time in ms since the epoch, in UTC, to the second."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"
