"""`dispatcher replay` and `dispatcher export`, as they are typed."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.bench_options import takes
from dispatcher.cli.execute import execute
from dispatcher.cli.replay_options import ReplayOptions
from dispatcher.cli.shared_options import ConfigFile, Since, Until

export = typer.Typer(no_args_is_help=True, help="Decisions as files, for notebooks and labelling.")

Out = Annotated[Path, typer.Option(help="The file to write; it must not exist.")]


class Format(StrEnum):
    """How decisions are written."""

    JSONL = "jsonl"
    PARQUET = "parquet"


@takes(ReplayOptions)
def replay(options: ReplayOptions) -> None:
    """Decide stored decisions again under other weights, floors or calibration, and show what changes."""
    from dispatcher.cli.replay import replay as decide_again

    execute(decide_again(options))


@export.command("decisions")
def export_decisions(
    out: Out,
    since: Since = "7d",
    until: Until = "0m",
    written_as: Annotated[Format, typer.Option("--format", help="How to write them.")] = Format.JSONL,
    config: ConfigFile = None,
) -> None:
    """Write the decisions of a time with every candidate and factor, for replay and notebooks."""
    from dispatcher.cli.exports import export as write

    execute(write(config, period=(since, until), out=out, as_parquet=written_as is Format.PARQUET))


@export.command("unsure")
def export_unsure(
    out: Out,
    since: Since = "7d",
    until: Until = "0m",
    margin: Annotated[float, typer.Option(min=0, max=2, help="Between the best two capabilities.")] = 0.03,
    height: Annotated[float, typer.Option(min=0, max=2, help="Above the scope floor.")] = 0.03,
    config: ConfigFile = None,
) -> None:
    """Write the texts that could as well have gone another way, for people to label."""
    from dispatcher.cli.exports import export_unsure as write

    execute(write(config, period=(since, until), out=out, margin=margin, height=height))


@export.command("labelled")
def export_labelled(out: Out, since: Since = "90d", until: Until = "0m", config: ConfigFile = None) -> None:
    """Write what feedback teaches, as rows of an evaluation set."""
    from dispatcher.cli.exports import export_labelled as write

    execute(write(config, period=(since, until), out=out))


@export.command("agents")
def export_agents(out: Out, config: ConfigFile = None) -> None:
    """Write the registered capabilities as the agents of an evaluation set."""
    from dispatcher.cli.exports import export_agents as write

    execute(write(config, out=out))


def gaps(
    since: Since = "7d",
    until: Until = "0m",
    nearness: Annotated[
        float, typer.Option(min=-1, max=1, help="Cosine that two texts have at least.")
    ] = 0.6,
    least: Annotated[int, typer.Option(min=1, help="Requests in a group.")] = 3,
    config: ConfigFile = None,
) -> None:
    """Show what people ask for and no agent does: refused texts in groups that mean the same."""
    from dispatcher.cli.exports import show_gaps

    execute(show_gaps(config, period=(since, until), nearness=nearness, least=least))
