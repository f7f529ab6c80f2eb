"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="YAML file with settings.", show_default=False)
]
Since = Annotated[str, typer.Option(help="From when on: 7d, 12h, 2026-11-01.")]
Until = Annotated[str, typer.Option(help="Before when; 0m is now.")]
