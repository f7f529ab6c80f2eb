"""A command in a process of its own says and ends the same as where the other tests here run it."""

import pytest

from tests.cli.conftest import Command
from tests.scenario.program import dispatcher, run


@pytest.mark.parametrize(
    "arguments",
    [("keys", "list"), ("prune",), ("replay", "--since", "1d"), ("keys", "make")],
    ids=" ".join,
)
def test_a_process_of_its_own_says_and_ends_the_same(
    arguments: tuple[str, ...], command: Command, tmp_path_factory: pytest.TempPathFactory
):
    inside = command(*arguments)

    folder = str(tmp_path_factory.mktemp("alone"))
    variables = {"DISPATCHER_DATA_DIR": folder, "DISPATCHER_ENCODER__NAME": "hashing"}
    alone = run(*dispatcher(*arguments), variables=variables)

    seen = [(one.returncode, one.stdout, one.stderr) for one in (inside, alone)]
    assert seen[0] == seen[1]
