"""What the tests read from the environment; the only place under tests/ that does."""

import os

RABBITMQ = "ARD_TEST_RABBITMQ"
"""URL of a broker to use: `amqp://guest:guest@127.0.0.1:PORT/`."""
POSTGRES = "ARD_TEST_POSTGRES"
"""URL of a server to use, as a superuser: `postgresql://postgres@127.0.0.1:PORT/postgres`."""
DATA = "ARD_DATA"
"""Folder with the evaluation data."""
RABBITMQ_HOME = "RABBITMQ_HOME"
"""RabbitMQ's own library folder, the one that holds `bin/` or `sbin/`."""


def variables() -> dict[str, str]:
    """A copy of the process's environment."""
    return dict(os.environ)  # noqa: TID251


def variable(name: str) -> str | None:
    """One variable; None where it is missing or empty."""
    return variables().get(name) or None


def is_ci() -> bool:
    """Whether a missing service is a failure rather than a reason to skip."""
    return (variable("CI") or "").lower() in {"1", "true", "yes"}
