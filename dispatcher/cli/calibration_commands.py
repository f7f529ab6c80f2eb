"""`dispatcher fit` and `dispatcher calibrations`, as they are typed."""

from typing import Annotated

import typer

from dispatcher.cli.bench_options import takes
from dispatcher.cli.execute import execute
from dispatcher.cli.fit_options import FitOptions
from dispatcher.cli.shared_options import ConfigFile, Since, Until

calibrations = typer.Typer(
    no_args_is_help=True, help="Calibrations by number: what decides which texts are in scope."
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Number = Annotated[int, typer.Argument(min=1, max=2**31 - 1, help="As `list` shows it.")]


@takes(FitOptions)
def fit(options: FitOptions) -> None:
    """Fit scope floors and similarity to the registry; measured on texts that they were not fitted on."""
    from dispatcher.cli.fit import run

    execute(run(options))


@calibrations.command("list")
def list_calibrations(as_json: AsJson = False, config: ConfigFile = None) -> None:
    """Show the newest calibrations and which one is in force."""
    from dispatcher.cli.calibrations import show_all

    execute(show_all(config, as_json=as_json))


@calibrations.command("show")
def show_calibration(number: Number, config: ConfigFile = None) -> None:
    """Print one calibration with its report, as JSON."""
    from dispatcher.cli.calibrations import show_one

    execute(show_one(config, number))


@calibrations.command("use")
def use_calibration(number: Number, config: ConfigFile = None) -> None:
    """Put one in force, an earlier one too; running dispatchers follow within a second."""
    from dispatcher.cli.calibrations import change

    execute(change(config, number, "in_force"))


@calibrations.command("shadow")
def shadow_calibration(number: Number, config: ConfigFile = None) -> None:
    """Have one asked beside the one in force: decisions store what it would have said."""
    from dispatcher.cli.calibrations import change

    execute(change(config, number, "shadow"))


@calibrations.command("retire")
def retire_calibration(number: Number, config: ConfigFile = None) -> None:
    """Use one no longer; without one in force the registry calibrates itself."""
    from dispatcher.cli.calibrations import change

    execute(change(config, number, "retired"))


@calibrations.command("compare")
def compare_calibrations(
    since: Since = "7d",
    until: Until = "0m",
    as_json: AsJson = False,
    config: ConfigFile = None,
) -> None:
    """Show how often a calibration in shadow would have decided otherwise, and where."""
    from dispatcher.cli.calibrations import compare

    execute(compare(config, period=(since, until), as_json=as_json))
