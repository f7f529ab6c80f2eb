"""The Makefile is the front door: what it can do, it says."""

import os
import re
import subprocess
import sys

import pytest

from tests.architecture import tree

PROMISED = frozenset(["setup", "demo", "run", "test", "check", "lint", "types", "contracts", "bench", "docs"])


def targets():
    makefile = "\n".join(tree.lines(tree.ROOT / "Makefile"))
    return set(re.findall(r"^\.PHONY: (\w+)$", makefile, re.MULTILINE))


def test_every_promised_target_exists():
    assert targets() >= PROMISED


def test_help_lists_every_target():
    printed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=tree.ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert {line.split()[1] for line in printed.splitlines()} == targets()


@pytest.mark.parametrize(
    ("cuda", "allowed", "status"), [("None", "", 0), ("'12.8'", "", 1), ("'12.8'", "yes", 0)]
)
def test_a_torch_with_cuda_is_noticed(tmp_path, cuda, allowed, status):
    (tmp_path / "torch.py").write_text(f"class version:\n    cuda = {cuda}\n")

    done = subprocess.run(
        [".ci/without-cuda", sys.executable],
        cwd=tree.ROOT,
        env={"PATH": os.defpath, "PYTHONPATH": str(tmp_path), "CUDA": allowed},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == status
    assert ("torch for CUDA 12.8" in done.stderr) == bool(status)


def test_torch_is_looked_at_before_the_encoders_are_installed():
    printed = subprocess.run(
        ["make", "-n", "--always-make", "encoders"], cwd=tree.ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert re.search(r"\^torch==.*\n\.ci/without-cuda .*\n.*\n.* -r requirements/encoders\.lock", printed)
