"""How a command runs: on uvloop, with errors of ours as one sentence."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

from dispatcher.errors import DispatcherError, first_error


def execute(work: Coroutine[Any, Any, None]) -> None:
    """Run a command to its end; an error of ours is one sentence on standard error and exit code 1."""
    import uvloop

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(work)
    except DispatcherError as error:
        sys.exit(f"error: {error.message}")
    except BaseExceptionGroup as group:
        first = first_error(group)
        if not isinstance(first, DispatcherError):
            raise
        sys.exit(f"error: {first.message}")
