"""Imports every one of our modules and reports, as JSON, what that did to the world.

Run as a process of its own: `python -m tests.architecture.importing`.
"""

import importlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, ClassVar

from tests.architecture import tree

ENVIRONMENT = os.environ  # noqa: TID251 -- watched here, not read
_SOCKET_EVENTS = {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"}
_KNOBS_OF_LIBRARIES = {"PYDANTIC_DISABLE_PLUGINS"}
"""Looked up whenever a model class is defined, and none of our business."""


class WatchedEnvironment(os._Environ[str]):
    """The process's environment, noting which of our modules look at it and for what."""

    readers: ClassVar[set[str]] = set()

    def __getitem__(self, key: str) -> str:
        self._note(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._note(str(key))
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self._note("*")
        return super().__iter__()

    def _note(self, key: str) -> None:
        module = responsible_module()
        if module and key not in _KNOBS_OF_LIBRARIES:
            self.readers.add(f"{module}: {key}")


def responsible_module() -> str | None:
    """Ours is to blame when it is reached on the way out before an import statement is.

    A library that reads the environment while it is being imported does so on its own account; one
    that our module calls while that is being imported does so on ours.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name: str = frame.f_globals.get("__name__", "")
        if name.startswith(("importlib", "_frozen_importlib")):
            return None
        if name.partition(".")[0] in tree.OURS:
            return name
        frame = frame.f_back
    return None


def watch() -> dict[str, Any]:
    """Import everything; returns the sockets used, the readers of the environment and threads left."""
    sockets: list[str] = []

    def note_socket(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _SOCKET_EVENTS:
            sockets.append(f"{event} {arguments[1:]!r}")

    sys.addaudithook(note_socket)
    ENVIRONMENT.__class__ = WatchedEnvironment
    for module in tree.modules():
        importlib.import_module(module)
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    return {"sockets": sockets, "readers": sorted(WatchedEnvironment.readers), "threads": threads}


if __name__ == "__main__":
    print(json.dumps(watch()))
