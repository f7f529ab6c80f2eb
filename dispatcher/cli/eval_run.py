"""Carries out `dispatcher eval`: settings and data set first, then the run with its progress bar."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from threadpoolctl import threadpool_limits

from dispatcher.assembly.encoders import embedding
from dispatcher.cli.eval_options import EvalOptions
from dispatcher.cli.eval_table import print_report
from dispatcher.cli.measured_product import measured_product
from dispatcher.errors import ConfigurationError, DispatcherError, RegistrationError, RequestError
from dispatcher.settings import Settings, load_settings
from dispatcher.tuning.basis.dataset import Dataset, read_dataset
from dispatcher.tuning.evaluation.asking import Tell
from dispatcher.tuning.evaluation.draws import Drawing, DrawRules, draw, measure
from dispatcher.tuning.evaluation.evaluate import evaluate

UNUSABLE = 2
"""Exit status where what was given can't be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What was named on the command line, read and checked."""

    settings: Settings
    dataset: Dataset
    drawing: Drawing | None


def prepare(options: EvalOptions) -> Prepared:
    """Read settings and data set; what can't be used is one sentence and exit status 2."""
    if options.registry_size is None and (options.replicas > 1 or options.twins):
        _refuse("--replicas and --twins go with --registry-size")
    if options.registry_size is not None and options.twins > options.registry_size:
        _refuse("--twins can't be more than --registry-size")
    try:
        settings = load_settings(options.config, **_encoder(options.encoder))
        dataset = read_dataset(options.folder, agents=options.agents, examples=options.examples)
        rules = _draws(options)
        drawing = draw(dataset, rules) if rules else None
    except DispatcherError as error:
        _refuse(error.message)
    return Prepared(settings=settings, dataset=dataset, drawing=drawing)


async def run(options: EvalOptions, prepared: Prepared) -> None:
    """Measure and print."""
    # As the product runs: more BLAS threads only fight for the cores.
    with threadpool_limits(limits=1), _progress() as tell:
        try:
            report = await _measure(prepared, options.seed, tell)
        except (ConfigurationError, RequestError, RegistrationError) as error:
            _refuse(error.message)
    if options.as_json:
        print(orjson.dumps(report).decode())
    else:
        print_report(report)


async def _measure(prepared: Prepared, seed: int, tell: Tell) -> dict[str, Any]:
    tell("loading the encoder", 0, 1)
    with embedding(prepared.settings.encoder) as embedder:
        tell("loading the encoder", 1, 1)
        product = measured_product(prepared.settings, embedder)
        if prepared.drawing is not None:
            report = await measure(prepared.drawing, product, tell)
        else:
            report = await evaluate(prepared.dataset, product, seed=seed, tell=tell)
        return {**report, "not_measured": _not_measured(prepared.settings)}


def _not_measured(settings: Settings) -> list[str]:
    """What is configured, decides in a dispatcher, and takes no part here."""
    return ["llm.url: a language model's advice on splitting and ties"] if settings.llm.url else []


def _encoder(named: str | None) -> dict[str, object]:
    """What `NAME` or `NAME:MODEL` sets."""
    if named is None:
        return {}
    name, _, model = named.partition(":")
    return {"encoder": {"name": name, "model": model} if model else {"name": name}}


def _draws(options: EvalOptions) -> DrawRules | None:
    if options.registry_size is None:
        return None
    return DrawRules(
        size=options.registry_size,
        replicas=options.replicas,
        twins=options.twins,
        draws=options.draws,
        seed=options.seed,
    )


@contextmanager
def _progress() -> Iterator[Tell]:
    """Bars on standard error where that is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks = {}

        def tell(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what)
            bars.update(tasks[what], completed=done, total=of)

        yield tell


def _refuse(sentence: str) -> NoReturn:
    sys.stderr.write(f"error: {sentence}\n")
    raise SystemExit(UNUSABLE)
