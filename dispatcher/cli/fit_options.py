"""The options of `dispatcher fit`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.bench_options import OutputOptions
from dispatcher.cli.shared_options import ConfigFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions(OutputOptions):
    """What is fitted, on what."""

    labelled: Annotated[
        Path | None,
        typer.Option(help="Rows of judged texts: `text`, `agents` (docs/tuning.md).", show_default=False),
    ] = None
    traffic: Annotated[bool, typer.Option("--traffic", help="Judged texts are what feedback says.")] = False
    since: Annotated[str, typer.Option(help="Feedback on what was decided from then on.")] = "90d"
    seed: Annotated[int, typer.Option(min=0, help="Of the folds and the intervals.")] = 0
    propose: Annotated[bool, typer.Option("--propose", help="Store self-calibration for review.")] = False
    config: ConfigFile = None
