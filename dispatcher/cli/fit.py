"""`dispatcher fit`: what the registry's calibration is, and a better one from judged rows."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from dispatcher.assembly import rules
from dispatcher.assembly.encoders import embedding
from dispatcher.cli.calibrations import BY, print_json
from dispatcher.cli.fit_options import FitOptions
from dispatcher.cli.history import judged_entries, open_history
from dispatcher.cli.streamed import consumed
from dispatcher.cli.terminal import folding_table, terminal
from dispatcher.clock import SystemClock
from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import Capability
from dispatcher.registry.agent import Agent
from dispatcher.registry.repository import RegistrySnapshot
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.faiss_index import FaissIndex
from dispatcher.routing.index import ExactIndex
from dispatcher.routing.stored_calibration import Made, State
from dispatcher.settings import Settings, load_settings
from dispatcher.store.agents import SqlAgents
from dispatcher.store.calibrations import SqlCalibrations
from dispatcher.store.engine import Database
from dispatcher.tuning.basis.product import Product, encoding
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.decisions.labels import labels
from dispatcher.tuning.fitting.calibration_rows import Chosen, choose_rows, of_labels, read_labelled
from dispatcher.tuning.fitting.fit_report import FitReport, measured
from dispatcher.tuning.fitting.scored_registry import ScoredRegistry, scored_registry


async def run(options: FitOptions) -> None:
    """Fit and print; with rows, or where it is asked for, the result is stored as proposed."""
    if options.labelled and options.traffic:
        raise ConfigurationError("--labelled and --traffic don't go together")
    settings = load_settings(options.config)
    async with open_history(settings) as database:
        snapshot = await SqlAgents(database).load()
        if not snapshot.agents:
            raise ConfigurationError("no agent is registered, so there is nothing to calibrate")
        chosen = await _rows(options, database, snapshot)
        fitted, own = await _fit(options, settings, snapshot, chosen)
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


async def _rows(options: FitOptions, database: Database, snapshot: RegistrySnapshot) -> Chosen | None:
    """The rows to fit on; None where none were asked for."""
    declared = [one for agent in snapshot.agents for one in agent.declaration.capabilities]
    registered = frozenset(Capability(one.name) for one in declared)
    examples = frozenset(text for one in declared for text in (*one.examples, *one.descriptions))
    if options.labelled:
        found: Sequence[RequestRow] = read_labelled(
            _read(options.labelled), options.labelled.name, registered
        )
    elif options.traffic:
        judged = judged_entries(database, (options.since, "0m"))
        found = await consumed(judged, lambda entries: list(of_labels(labels(entries))))
    else:
        return None
    return choose_rows(found, registered, examples)


async def _fit(
    options: FitOptions, settings: Settings, snapshot: RegistrySnapshot, chosen: Chosen | None
) -> tuple[FitReport | None, Calibration]:
    """What the rows give, if there are any, and what self-calibration gives."""
    with threadpool_limits(limits=1), embedding(settings.encoder) as embedder:
        product = Product(
            embedder=embedder,
            batch_size=settings.encoder.batch_size,
            make_index=FaissIndex if settings.routing.index == "faiss" else ExactIndex,
            index=settings.routing.index,
            rules=rules.routing_rules(settings),
            clock=SystemClock(),
        )
        texts = _texts(snapshot.agents) + len(chosen.rows if chosen else ())
        with encoding(product, texts) as encoder:
            registry = await scored_registry(product, encoder, snapshot.agents, snapshot.version)
            if chosen is None or options.kind is None:
                return None, registry.own
            return await _measure(registry, chosen, options.kind, options.seed), registry.own


async def _measure(registry: ScoredRegistry, chosen: Chosen, kind: str, seed: int) -> FitReport:
    scored = await registry.score(chosen.rows)
    measure = partial(measured, own=registry.own, ground=registry.ground, kind=kind, seed=seed)
    return measure(scored, left_out=chosen.left_out)


async def _in_force(database: Database, encoder_id: str) -> int | None:
    marks = await SqlCalibrations(database).marks(encoder_id)
    return next((mark.number for mark in marks if mark.state is State.IN_FORCE), None)


async def _propose(database: Database, made: Calibration, report: Mapping[str, Any]) -> int:
    recorded = Recorded(calibration=made, contrast=contrast_digest())
    return await SqlCalibrations(database).propose(Made(recorded=recorded, made_by=BY, report=report))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"the file {str(path)!r} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"the file {str(path)!r} is not UTF-8") from None


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
        table = folding_table("figure", "self-calibration", fitted.calibration.kind)
        for name, (before, after) in fitted.figures.items():
            table.add_row(name, _shown(before), _shown(after))
        table.add_row("scope floor", f"{own.floor:.3f}", f"{fitted.calibration.floor:.3f}")
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


def _shown(figure: Any) -> str:  # noqa: ANN401  (a metrics.Figure; that room is for numbers)
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
