"""`python -m tests.comparison DATASET_DIR --python PYTHON`: our routing beside semantic-router's.

PYTHON is that of the environment in which semantic-router is installed (`make comparison` makes it).
Both get the same texts, the same vectors and the same rows; docs/tuning.md says what the figures mean.
Prints a table and, last, one JSON line.
"""

import asyncio
import json
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dispatcher.tuning.basis.dataset import read_dataset
from tests.comparison.material import write_material
from tests.comparison.ours import OurSide, our_side
from tests.comparison.report import conclude, table
from tests.comparison.sample import sample
from tests.services.environment import variables

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""As we run; more threads than that fight for the cores with vectors this small."""


class TheirSide:
    """The process in the other environment."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def answer(self) -> dict[str, Any]:
        """The next line that it prints; it says on standard error why there is none."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise SystemExit("semantic-router's side ended too early")
        found: dict[str, Any] = json.loads(line)
        return found

    async def milliseconds(self) -> dict[str, float]:
        """One round of every setting."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"round\n")
        return await self.answer()


@asynccontextmanager
async def their_side(python: Path, folder: Path) -> AsyncIterator[TheirSide]:
    """The process until the block ends."""
    pipe = asyncio.subprocess.PIPE
    command = (str(python), "-m", "tests.comparison.theirs", str(folder))
    root = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, cwd=root, env=variables() | ONE_THREAD
    )
    try:
        yield TheirSide(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def compare(side: OurSide, arguments: Namespace, folder: Path) -> Mapping[str, Any]:
    """Our choices, then theirs, then rounds of both in turn: whoever began a round is second in the next."""
    material = await side.material()
    write_material(folder, material)
    texts = sample(material.half(for_fitting=False))
    rounds: list[dict[str, float]] = []
    async with their_side(arguments.python, folder) as other:
        measured = await other.answer()
        for number in range(arguments.rounds):
            if number % 2:
                theirs = await other.milliseconds()
                rounds.append(await side.milliseconds(texts) | theirs)
            else:
                rounds.append(await side.milliseconds(texts) | await other.milliseconds())
    return conclude(material, measured, rounds)


def parsed(arguments: Sequence[str]) -> Namespace:
    """What was asked for on the command line."""
    parser = ArgumentParser(prog="python -m tests.comparison", description=__doc__)
    parser.add_argument("dataset", type=Path, help="a folder as `dispatcher eval` takes it (docs/tuning.md)")
    parser.add_argument("--python", type=Path, required=True, help="where semantic-router is installed")
    parser.add_argument("--rounds", type=int, default=5, help="of timing, each side once in each")
    parser.add_argument("--keep", type=Path, help="a folder for the texts, vectors and choices")
    return parser.parse_args(arguments)


def main(arguments: Namespace) -> None:
    """Compare and print."""
    with tempfile.TemporaryDirectory() as temporary, our_side(read_dataset(arguments.dataset)) as side:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(compare(side, arguments, folder))
    print("\n".join(table(report)))
    print(json.dumps(report, ensure_ascii=False))


if __name__ == "__main__":
    main(parsed(sys.argv[1:]))
