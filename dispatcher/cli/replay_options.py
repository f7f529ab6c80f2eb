"""The options of `dispatcher replay`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.bench_options import OutputOptions
from dispatcher.cli.shared_options import ConfigFile, Since, Until


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions(OutputOptions):
    """What is decided again, and under which terms."""

    since: Since = "7d"
    until: Until = "0m"
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Exported decisions instead of the database.", show_default=False),
    ] = None
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="`weights.similarity=0.6`, `floor=0.4`, …; may be repeated."),
    ] = None
    calibration: Annotated[
        int | None, typer.Option(help="The number of a stored calibration.", show_default=False)
    ] = None
    config: ConfigFile = None
