"""`dispatcher encoders`: which encoders can be used here, and what each costs."""

import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.execute import execute

if TYPE_CHECKING:
    from dispatcher.routing.embedder import Embedder
    from dispatcher.settings import EncoderSettings

encoders = typer.Typer(no_args_is_help=True, help="How texts become vectors: what there is, and its cost.")
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]


@encoders.command("list")
def list_encoders(as_json: AsJson = False) -> None:
    """Show every encoder: whether it can be used here, what it needs, its dimensions, languages, licence."""
    from dispatcher.assembly.known_encoders import KNOWN

    rows = [
        {name: value for name, value in asdict(one).items() if name not in {"packages", "is_complete"}}
        | {"installed": one.is_installed}
        for one in KNOWN
    ]
    if as_json:
        _print_json({"encoders": rows})
        return
    from dispatcher.cli.terminal import folding_table, terminal

    table = folding_table("encoder.name", "model", "here", "needs", "dimensions", "languages", "licence")
    for row in rows:
        here = "yes" if row["installed"] else "no"
        own = (str(row[name] or "the model's") for name in ("dimensions", "languages", "licence"))
        table.add_row(row["name"], row["model"], here, row["needs"], *own)
    terminal().print(table)


@encoders.command("bench")
def bench_encoders(
    config: Annotated[
        Path | None, typer.Option(help="Time the encoder of this YAML file as well.", show_default=False)
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="This one, beside the packaged one.", show_default=False),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=200, help="Interleaved rounds.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Time each installed encoder with 1, 8 and 32 texts, beside the packaged one; medians of rounds."""

    async def work() -> None:
        report = _measured(_chosen(config, only), rounds)
        if as_json:
            _print_json(report)
        else:
            _print_figures(report["encoders"])

    execute(work())


def _measured(chosen: "dict[str, EncoderSettings]", rounds: int) -> dict[str, Any]:
    from threadpoolctl import threadpool_limits

    from dispatcher.assembly.encoders import embedding
    from dispatcher.bench.encoders import measure

    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(limits=1))
        embedders: dict[str, Embedder] = {}
        for name, settings in chosen.items():
            _say(f"loading {name}")
            embedders[name] = stack.enter_context(embedding(settings))
        figures = measure(embedders, rounds, _say)
    return {"benchmark": "encoders", "rounds": rounds, "encoders": figures}


def _chosen(config: Path | None, only: list[str] | None) -> "dict[str, EncoderSettings]":
    """What is measured, by name: the packaged one first, the configured one last."""
    from dispatcher.assembly.known_encoders import KNOWN
    from dispatcher.errors import ConfigurationError
    from dispatcher.settings import EncoderSettings, load_settings

    complete = {one.setting or one.name: one for one in KNOWN if one.is_complete}
    for name in only or ():
        if name not in complete:
            raise ConfigurationError(f"there is no encoder {name!r}; there are {', '.join(complete)}")
        if not complete[name].is_installed:
            raise ConfigurationError(f"the encoder {name!r} needs: {complete[name].needs}")
    first = KNOWN[0].name
    found = {
        name: EncoderSettings(name=one.name, model=one.setting)
        for name, one in complete.items()
        if one.is_installed and (not only or name == first or name in only)
    }
    if config is not None:
        own = load_settings(config).encoder
        found[f"{own.name} of {config.name}"] = own
    return found


def _print_figures(figures: dict[str, Any]) -> None:
    from dispatcher.bench.encoders import SIZES
    from dispatcher.cli.terminal import folding_table, terminal

    names = [f"{size} text{'s' if size > 1 else ''} ms" for size in SIZES]
    first = next(iter(figures))
    table = folding_table("encoder", "dimensions", *names, *(f"{size}: ratio to {first}" for size in SIZES))
    for name, one in figures.items():
        medians = (f"{one['median_ms'][str(size)]:.2f}" for size in SIZES)
        ratios = (f"{one[f'ratio_to_{first}'][str(size)]:.2f}" for size in SIZES)
        table.add_row(name, str(one["dimensions"]), *medians, *ratios)
    terminal().print(table)


def _print_json(document: dict[str, Any]) -> None:
    import orjson

    print(orjson.dumps(document).decode())


def _say(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)
