"""`python -m tests.services` as a command; the nodes themselves are tested by those who use them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.environment import POSTGRES, RABBITMQ, RABBITMQ_HOME, variables
from tests.services.ports import free_ports

ROOT = Path(__file__).parents[2]
BOTH = {RABBITMQ: "amqp://elsewhere/", POSTGRES: "postgresql://elsewhere/"}


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.services", *arguments],
        cwd=ROOT,
        env=variables() | settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_addresses_that_are_set_are_passed_on_and_nothing_is_started():
    finished = run("--", "env", **BOTH)

    assert f"{RABBITMQ}=amqp://elsewhere/" in finished.stdout.splitlines()
    assert f"{POSTGRES}=postgresql://elsewhere/" in finished.stdout.splitlines()


def test_the_exit_status_is_the_commands():
    assert run("--", "sh", "-c", "exit 7", **BOTH).returncode == 7


def test_without_a_command_it_says_how_to_use_it():
    finished = run()

    assert finished.returncode == 2
    assert "usage" in finished.stderr


def test_in_ci_a_missing_service_is_an_error_that_says_how_to_install_it(tmp_path: Path):
    settings = {RABBITMQ_HOME: str(tmp_path), RABBITMQ: "", POSTGRES: "postgresql://elsewhere/", "CI": "true"}

    finished = run("--", "env", **settings)

    assert finished.returncode == 2
    assert "apt-get install" in finished.stderr


@pytest.mark.parametrize("ci", ["", "false"])
def test_elsewhere_the_command_runs_without_the_missing_service(tmp_path: Path, ci: str):
    settings = {RABBITMQ_HOME: str(tmp_path), RABBITMQ: "", POSTGRES: "postgresql://elsewhere/", "CI": ci}

    finished = run("--", "echo", "done", **settings)

    assert finished.returncode == 0
    assert finished.stdout == "done\n"
    assert "apt-get install" in finished.stderr


def test_free_ports_are_different():
    assert len(set(free_ports(5))) == 5
