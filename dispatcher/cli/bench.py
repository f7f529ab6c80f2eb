"""`dispatcher bench`: what we add to the bare thing, as ratios; absolute figures depend on the machine."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import typer

from dispatcher.cli.bench_options import (
    LoadOptions,
    MemoryOptions,
    RoundtripOptions,
    RouteOptions,
    ServiceOptions,
    takes,
)
from dispatcher.cli.execute import execute

if TYPE_CHECKING:
    from dispatcher.bench.chain import Services

bench = typer.Typer(no_args_is_help=True, help="Measure speed beside the bare thing, on this machine.")
_SIGTERM_STATUS = 128 + signal.SIGTERM


@bench.command()
@takes(RouteOptions)
def route(options: RouteOptions) -> None:
    """A routing decision beside one flat vector search and one encoder call."""
    from dispatcher.bench.fleet import LARGEST
    from dispatcher.bench.route import route as measure

    sizes = _counts(options.agents, LARGEST)
    _run(measure(sizes, options.rounds, options.encoder.value, _say), as_json=options.as_json)


@bench.command()
@takes(RoundtripOptions)
def roundtrip(options: RoundtripOptions) -> None:
    """A whole dispatch beside bare tasks over RabbitMQ; embedded, beside a direct HTTP call."""
    from dispatcher.bench.contest import Rules
    from dispatcher.bench.roundtrip import roundtrip as measure
    from dispatcher.clock import SystemClock

    async def work() -> dict[str, Any]:
        rules = Rules(
            rounds=options.rounds,
            seconds=options.seconds,
            concurrency=_counts(options.concurrency, 1_000),
            payload_kb=options.payload,
        )
        return await measure(rules, _services(options), clock=SystemClock(), say=_say)

    _run(work(), as_json=options.as_json)


@bench.command()
@takes(LoadOptions)
def load(options: LoadOptions) -> None:
    """Requests at a steady rate, whether or not the dispatcher keeps up (open loop)."""
    from dispatcher.bench.load import RATE, LoadRules, Own
    from dispatcher.bench.load import load as measure
    from dispatcher.bench.post import Target
    from dispatcher.clock import SystemClock

    async def work() -> dict[str, Any]:
        services = _services(options)
        where = Target(url=options.url) if options.url else Own(services=services)
        rules = LoadRules(
            requests=options.requests,
            rate=options.rate or RATE,
            payload_kb=options.payload,
            find=options.find or options.rate is None,
            step_s=options.step,
        )
        return await measure(rules, where, clock=SystemClock(), say=_say)

    _run(work(), as_json=options.as_json)


@bench.command()
@takes(MemoryOptions)
def memory(options: MemoryOptions) -> None:
    """Resident memory of a gateway that knows many agents, and of an agent's process."""
    from dispatcher.bench.memory import MemoryRules
    from dispatcher.bench.memory import memory as measure
    from dispatcher.clock import SystemClock

    async def work() -> dict[str, Any]:
        rules = MemoryRules(agents=options.agents, encoder=options.encoder.value)
        return await measure(rules, _services(options), clock=SystemClock(), say=_say)

    _run(work(), as_json=options.as_json)


def _run(work: Coroutine[Any, Any, dict[str, Any]], *, as_json: bool) -> None:
    async def told() -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs has one
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        _tell(await work, as_json=as_json)

    try:
        execute(told())
    except asyncio.CancelledError:
        sys.exit(_SIGTERM_STATUS)


def _tell(report: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        import orjson

        print(orjson.dumps(report).decode())
        return
    from dispatcher.cli.bench_table import print_report

    print_report(report)


def _say(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def _counts(text: str, largest: int) -> tuple[int, ...]:
    """Numbers apart by commas, in rising order."""
    try:
        found = tuple(sorted({int(one) for one in text.split(",")}))
    except ValueError:
        found = ()
    if not found or not 1 <= found[0] <= found[-1] <= largest:
        raise typer.BadParameter(f"{text!r} must be numbers from 1 to {largest}, apart by commas")
    return found


def _services(options: ServiceOptions) -> "Services | None":
    """What was named, under a prefix of this run's own."""
    from dispatcher.bench.chain import given_services
    from dispatcher.identifiers import new_id

    prefix = f"bench-{new_id().replace('-', '')[-12:]}"
    return given_services(options.broker, options.store, prefix)
