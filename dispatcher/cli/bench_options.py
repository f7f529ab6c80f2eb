"""The options of `dispatcher bench`: they are too many for the parameters of functions."""

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature
from typing import Annotated, TypeVar, get_type_hints

import typer


class Encoder(StrEnum):
    """See the setting `encoder.name`."""

    USE = "use"
    HASHING = "hashing"


Rounds = Annotated[int, typer.Option(min=1, max=50, help="Interleaved rounds.")]
Chosen = Annotated[Encoder, typer.Option(help="How texts become vectors.")]
Payload = Annotated[int, typer.Option(min=1, max=63, help="Kilobytes of a task, and of its result.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Of every benchmark."""

    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteOptions(OutputOptions):
    """Of `route`."""

    agents: Annotated[str, typer.Option(help="Sizes of the registry.")] = "100,1000,10000"
    rounds: Rounds = 10
    encoder: Chosen = Encoder.USE


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions(OutputOptions):
    """Of what starts a whole dispatcher."""

    broker: Annotated[
        str | None,
        typer.Option(help="RabbitMQ on loopback; queues made there are deleted.", show_default=False),
    ] = None
    store: Annotated[
        str | None, typer.Option(help="An empty PostgreSQL database; rows stay there.", show_default=False)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundtripOptions(ServiceOptions):
    """Of `roundtrip`."""

    rounds: Rounds = 5
    seconds: Annotated[float, typer.Option(min=0.1, max=60, help="Of each measurement.")] = 2.0
    concurrency: Annotated[str, typer.Option(help="Callers at once.")] = "1,16,128"
    payload: Payload = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions(ServiceOptions):
    """Of `load`."""

    requests: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many in all.")] = 10_000
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.1, max=100_000, help="Requests per second; not given: --find, then 500.", show_default=False
        ),
    ] = None
    find: Annotated[
        bool, typer.Option("--find", help="First find and hold the highest rate with p99 below 250 ms.")
    ] = False
    step: Annotated[float, typer.Option(min=0.2, max=60, help="Seconds of each step of --find.")] = 5.0
    payload: Payload = 1
    url: Annotated[
        str | None,
        typer.Option(
            help="A running dispatcher with `--agent dispatcher.bench.echo:agent`.", show_default=False
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions(ServiceOptions):
    """Of `memory`."""

    agents: Annotated[int, typer.Option(min=1, max=10_000, help="Registered beside the one that works.")] = (
        1_000
    )
    encoder: Chosen = Encoder.USE


OptionsT = TypeVar("OptionsT", bound=OutputOptions)


def takes(options: type[OptionsT]) -> Callable[[Callable[[OptionsT], None]], Callable[..., None]]:
    """Make a command of a function of these options: the fields become the command's options."""
    hints = get_type_hints(options, include_extras=True)
    parameters = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=_default(one), annotation=hints[one.name])
        for one in fields(options)
    ]

    build: Callable[..., OptionsT] = options

    def make(body: Callable[[OptionsT], None]) -> Callable[..., None]:
        @wraps(body)
        def command(**given: object) -> None:
            body(build(**given))

        command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = hints
        return command

    return make


def _default(field: "Field[object]") -> object:
    """What a parameter without a default is told by."""
    return Parameter.empty if field.default is MISSING else field.default
