"""The folder of a test says what is real in it."""

import ast

from tests.architecture import tree

SERVICES = frozenset({"amqp_url", "postgres_url", "own_broker"})
WITH_SERVICES = frozenset({"conformance", "scenario", "interop", "faults", "services"})
OTHERS = frozenset({"agents", "architecture", "bench", "comparison", "golden", "notebooks"})


def requested(path):
    """The fixtures that a test file's functions take."""
    for node in ast.walk(tree.parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (argument.arg for argument in node.args.args)


def test_unit_folders_use_no_service():
    units = [p for p in tree.python_files("tests") if len(p.parts) > 2 and p.parts[1] not in WITH_SERVICES]

    assert not [path for path in units if SERVICES & set(requested(path))]


def test_each_unit_folder_mirrors_a_room():
    rooms = {path.parts[1] for path in tree.python_files("dispatcher") if len(path.parts) > 2}
    folders = {path.parts[1] for path in tree.python_files("tests") if len(path.parts) > 2}

    assert folders <= rooms | WITH_SERVICES | OTHERS
