"""The options of `dispatcher eval`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.bench_options import OutputOptions
from dispatcher.cli.shared_options import ConfigFile


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions(OutputOptions):
    """What is measured, with what."""

    folder: Annotated[Path, typer.Argument(metavar="DATASET_DIR", help="A data set (docs/tuning.md).")]
    agents: Annotated[
        Path | None, typer.Option(help="Another set's agents.jsonl, with its pool.jsonl.", show_default=False)
    ] = None
    encoder: Annotated[
        str | None,
        typer.Option(metavar="NAME[:MODEL]", help="As `encoder.name`, `encoder.model`.", show_default=False),
    ] = None
    examples: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=20,
            help="Of each agent: its own, then those of pool.jsonl; not given: its own.",
            show_default=False,
        ),
    ] = None
    registry_size: Annotated[
        int | None,
        typer.Option(min=1, help="Measure random registries of so many capabilities.", show_default=False),
    ] = None
    replicas: Annotated[int, typer.Option(min=1, max=100, help="Agents of each drawn capability.")] = 1
    twins: Annotated[
        int, typer.Option(min=0, help="Drawn capabilities that are registered under a second name too.")
    ] = 0
    draws: Annotated[int, typer.Option(min=1, max=1_000, help="How many registries are drawn.")] = 30
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0
    config: ConfigFile = None
