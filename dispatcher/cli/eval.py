"""`dispatcher eval`: how well the product's own routing does on a data set."""

from dispatcher.cli.bench_options import takes
from dispatcher.cli.eval_options import EvalOptions
from dispatcher.cli.execute import execute


@takes(EvalOptions)
def evaluation(options: EvalOptions) -> None:
    """Measure accuracy, refusal, calibration, balance and speed of routing on a data set."""
    from dispatcher.cli.eval_run import prepare, run

    execute(run(options, prepare(options)))
