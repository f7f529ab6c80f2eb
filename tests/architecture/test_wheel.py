"""What the wheel holds: `dispatcher`, its migrations and data, and no sample agent."""

import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import PurePosixPath

import pytest

from tests.architecture import tree

pytestmark = pytest.mark.xdist_group("wheel")  # built once, not once per process
SOURCES = ("dispatcher", "migrations")
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "alembic.ini")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built without network from a copy: building leaves litter beside its sources."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for path in tree.files():
        if path.parts[0] in SOURCES or str(path) in BUILT_FROM:
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_bytes((tree.ROOT / path).read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(copy)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=55, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    with zipfile.ZipFile(next(out.glob("*.whl"))) as archive:
        yield archive


def names(wheel):
    return [PurePosixPath(name) for name in wheel.namelist() if ".dist-info/" not in name]


def test_the_wheel_holds_dispatcher_only(wheel):
    assert {name.parts[0] for name in names(wheel)} == {"dispatcher"}


def test_the_wheel_holds_every_file_of_dispatcher(wheel):
    ours = {PurePosixPath(path.as_posix()) for path in tree.files() if path.parts[0] == "dispatcher"}

    assert ours <= set(names(wheel))


def test_the_wheel_holds_the_migrations(wheel):
    versions = {path.name for path in tree.python_files("migrations") if path.parts[1:2] == ("versions",)}

    assert versions
    assert versions <= {name.name for name in names(wheel) if "migrations" in name.parts}


def test_the_wheel_says_what_an_install_without_extras_needs(wheel):
    metadata = Parser().parsestr(
        wheel.read(next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))).decode()
    )
    base = {
        re.split(r"[<>=;\[ ]", line)[0]
        for line in metadata.get_all("Requires-Dist", [])
        if "extra ==" not in line
    }

    assert base == {"aio-pika", "aiohttp", "msgspec", "orjson", "pydantic", "uuid-utils"}
    assert metadata["License-Expression"] == "Apache-2.0"
