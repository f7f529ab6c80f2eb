"""`dispatcher bench`: what we add to the bare thing, as ratios; absolute figures depend on the machine."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from enum import StrEnum
from typing import Annotated, Any

import typer

from dispatcher.cli.execute import execute

bench = typer.Typer(no_args_is_help=True, help="Measure speed beside the bare thing, on this machine.")


class Encoder(StrEnum):
    """See the setting `encoder.name`."""

    USE = "use"
    HASHING = "hashing"


Rounds = Annotated[int, typer.Option(min=1, max=50, help="Interleaved rounds.")]
Broker = Annotated[
    str | None, typer.Option(help="RabbitMQ on loopback; queues made there are deleted.", show_default=False)
]
Store = Annotated[
    str | None, typer.Option(help="An empty PostgreSQL database; rows stay there.", show_default=False)
]
Chosen = Annotated[Encoder, typer.Option(help="How texts become vectors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]
_SIGTERM_STATUS = 128 + signal.SIGTERM


@bench.command()
def route(
    agents: Annotated[str, typer.Option(help="Sizes of the registry.")] = "100,1000,10000",
    rounds: Rounds = 10,
    encoder: Chosen = Encoder.USE,
    as_json: AsJson = False,
) -> None:
    """A routing decision beside one flat vector search and one encoder call."""
    from dispatcher.bench.fleet import LARGEST
    from dispatcher.bench.route import route as measure

    _run(measure(_counts(agents, LARGEST), rounds, encoder.value, _say), as_json=as_json)


@bench.command()
def roundtrip(
    rounds: Rounds = 5,
    seconds: Annotated[float, typer.Option(min=0.1, max=60, help="Of each measurement.")] = 2.0,
    concurrency: Annotated[str, typer.Option(help="Callers at once.")] = "1,16,128",
    broker: Broker = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """A whole dispatch beside a bare task over RabbitMQ; embedded, beside a direct HTTP call."""
    from dispatcher.bench.chain import given_services
    from dispatcher.bench.contest import Rules
    from dispatcher.bench.roundtrip import roundtrip as measure
    from dispatcher.clock import SystemClock

    async def work() -> dict[str, Any]:
        rules = Rules(rounds=rounds, seconds=seconds, concurrency=_counts(concurrency, 1_000))
        services = given_services(broker, store, _prefix())
        return await measure(rules, services, clock=SystemClock(), say=_say)

    _run(work(), as_json=as_json)


@bench.command()
def load(
    requests: Annotated[int, typer.Option(min=1, max=1_000_000)] = 10_000,
    rate: Annotated[float, typer.Option(min=0.1, max=100_000, help="Requests per second.")] = 500,
    url: Annotated[
        str | None, typer.Option(help="A running dispatcher with `--agent dispatcher.bench.echo:agent`.")
    ] = None,
    broker: Broker = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Requests at a steady rate, whether or not the dispatcher keeps up (open loop)."""
    from dispatcher.bench.chain import given_services
    from dispatcher.bench.load import LoadRules, Own
    from dispatcher.bench.load import load as measure
    from dispatcher.bench.post import Target
    from dispatcher.clock import SystemClock

    async def work() -> dict[str, Any]:
        services = given_services(broker, store, _prefix())
        where = Target(url=url) if url else Own(services=services)
        rules = LoadRules(requests=requests, rate=rate)
        return await measure(rules, where, clock=SystemClock(), say=_say)

    _run(work(), as_json=as_json)


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


def _prefix() -> str:
    from dispatcher.identifiers import new_id

    return f"bench-{new_id().replace('-', '')[-12:]}"
