"""Programs that all tests of a module share: starting them costs more than what most tests do with them."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from tests.scenario.program import Program


class Crew:
    """Programs by name. Those that a test ended are started again for the next one."""

    def __init__(self, starts: Mapping[str, Callable[[], Program]]) -> None:
        self._starts = starts
        self._running: dict[str, Program] = {}
        self._stack = ExitStack()

    def whole(self) -> Mapping[str, Program]:
        """All of them, in the order they were given; the caller waits until they are ready."""
        for name, start in self._starts.items():
            if name not in self._running or self._running[name].has_ended:
                self._running[name] = self._stack.enter_context(start())
        return dict(self._running)

    def close(self) -> None:
        """End them all."""
        self._stack.close()
