"""`dispatcher fit`: what the registry's calibration is, and a better one from judged rows."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from dispatcher.assembly.encoders import embedding
from dispatcher.cli.calibrations import BY, moment, print_json
from dispatcher.cli.fit_options import FitOptions
from dispatcher.cli.history import judged_entries, open_history, times
from dispatcher.cli.measured_product import measured_product
from dispatcher.cli.streamed import consumed
from dispatcher.cli.terminal import folding_table, terminal
from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import Capability
from dispatcher.registry.agent import Agent
from dispatcher.registry.repository import RegistrySnapshot
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.stored_calibration import Made, State
from dispatcher.settings import Settings, load_settings
from dispatcher.store.agents import SqlAgents
from dispatcher.store.calibrations import SqlCalibrations
from dispatcher.store.engine import Database
from dispatcher.tuning.basis.metrics import Figure
from dispatcher.tuning.basis.product import encoding
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.basis.versions import code_version
from dispatcher.tuning.decisions.labels import labels
from dispatcher.tuning.fitting.calibration_rows import Judgements, choose_rows, of_labels, read_labelled
from dispatcher.tuning.fitting.fit_report import FitReport, Origin, measured
from dispatcher.tuning.fitting.scored_registry import scored_registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """The rows to fit on, and where they are from."""

    rows: Sequence[RequestRow]
    origin: Origin


async def run(options: FitOptions) -> None:
    """Fit and print; with rows, or where it is asked for, the result is stored as proposed."""
    if options.labelled and options.traffic:
        raise ConfigurationError("--labelled and --traffic don't go together")
    settings = load_settings(options.config)
    async with open_history(settings) as database:
        snapshot = await SqlAgents(database).load()
        if not snapshot.agents:
            raise ConfigurationError("no agent is registered, so there is nothing to calibrate")
        fitting = await _rows(options, database, snapshot)
        fitted, own = await _fit(settings, snapshot, fitting)
        made = own if fitted is None else fitted.calibration
        report = {} if fitted is None else fitted.document
        in_force = await _in_force(database, made.encoder_id)
        number = await _propose(database, made, report) if fitted or options.propose else None
    facts = {"in_force": in_force, "proposed": number}
    if options.as_json:
        both = {"self": _described(own), "fitted": _described(made) if fitted else None}
        print_json({**facts, **both, "report": report})
    else:
        _print(own, fitted, facts)


async def _rows(options: FitOptions, database: Database, snapshot: RegistrySnapshot) -> Fitting | None:
    """The rows to fit on; None where none were asked for."""
    declared = [one for agent in snapshot.agents for one in agent.declaration.capabilities]
    registered = frozenset(Capability(one.name) for one in declared)
    examples = frozenset(text for one in declared for text in (*one.examples, *one.descriptions))
    if options.labelled:
        found, source = _labelled(options.labelled, registered)
    elif options.traffic:
        since, until = times((options.since, "0m"))
        judged = judged_entries(database, since, until)
        found = await consumed(judged, lambda entries: of_labels(labels(entries)))
        source = {"since": moment(since), "until": moment(until)}
    else:
        return None
    chosen = choose_rows(found, registered, examples)
    origin = Origin(
        kind="labelled" if options.labelled else "traffic",
        source=source,
        left_out=chosen.left_out,
        seed=options.seed,
        code=code_version(),
    )
    return Fitting(rows=chosen.rows, origin=origin)


def _labelled(path: Path, registered: frozenset[Capability]) -> tuple[Judgements, Mapping[str, str]]:
    content = _read(path)
    try:
        found = read_labelled(content.decode(), path.name, registered)
    except UnicodeDecodeError:
        raise ConfigurationError(f"the file {str(path)!r} is not UTF-8") from None
    return found, {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()}


async def _fit(
    settings: Settings, snapshot: RegistrySnapshot, fitting: Fitting | None
) -> tuple[FitReport | None, Calibration]:
    """What the rows give, if there are any, and what self-calibration gives."""
    with threadpool_limits(limits=1), embedding(settings.encoder) as embedder:
        product = measured_product(settings, embedder)
        texts = _texts(snapshot.agents) + len(fitting.rows if fitting else ())
        with encoding(product, texts) as encoder:
            registry = await scored_registry(product, encoder, snapshot.agents, snapshot.version)
            if fitting is None:
                return None, registry.own
            scored = await registry.score(fitting.rows)
            return measured(scored, registry.own, registry.ground, fitting.origin), registry.own


async def _in_force(database: Database, encoder_id: str) -> int | None:
    marks = await SqlCalibrations(database).marks(encoder_id)
    return next((mark.number for mark in marks if mark.state is State.IN_FORCE), None)


async def _propose(database: Database, made: Calibration, report: Mapping[str, Any]) -> int:
    recorded = Recorded(calibration=made, contrast=contrast_digest())
    return await SqlCalibrations(database).propose(Made(recorded=recorded, made_by=BY, report=report))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"the file {str(path)!r} can't be read: {error.strerror}") from None


def _texts(agents: Sequence[Agent]) -> int:
    declared = (one for agent in agents for one in agent.declaration.capabilities)
    return sum(len(one.examples) + len(one.descriptions) for one in declared)


def _described(made: Calibration) -> dict[str, object]:
    return {
        "kind": made.kind,
        "encoder_id": made.encoder_id,
        "registry_version": made.registry_version,
        "scope_floor": made.floor,
        "curve": None if made.curve is None else asdict(made.curve),
        "floors": dict(made.floors),
        "twins": sorted(map(list, made.twins)),
    }


def _print(own: Calibration, fitted: FitReport | None, facts: Mapping[str, int | None]) -> None:
    console = terminal()
    console.print(
        f"self-calibration of registry version {own.registry_version}: {own.kind}, "
        f"scope floor {own.floor:.3f}, twins: {len(own.twins)}"
    )
    if fitted is not None:
        console.print(fitted.sentence)
        console.print(f"top1_or_twin with either: {_shown(fitted.top1_or_twin)}")
        table = folding_table("figure", "self-calibration", fitted.calibration.kind, "difference")
        for name, one in fitted.figures.items():
            table.add_row(name, _shown(one.own), _shown(one.fitted), _shown(one.difference, sign="+"))
        apart = fitted.calibration.floor - own.floor
        table.add_row("scope floor", f"{own.floor:.3f}", f"{fitted.calibration.floor:.3f}", f"{apart:+.3f}")
        console.print(table)
        for name, floor in fitted.calibration.floors.items():
            console.print(f"{name} has a scope floor of its own: {floor:.3f}")
    number = facts["proposed"]
    if facts["in_force"] is not None:
        console.print(f"in force: {facts['in_force']}")
    if number is not None:
        console.print(
            f"proposed as {number}; `dispatcher calibrations shadow {number}` tries it beside the one in "
            f"force, `dispatcher calibrations use {number}` puts it in force"
        )


def _shown(figure: Figure, sign: str = "") -> str:
    value, low, high = (format(one, f"{sign}.3f") for one in (figure.value, figure.low, figure.high))
    return f"{value} [{low}, {high}]"
