"""A log record that costs less to make than the standard library's; standard library only."""

import logging
import sys
import time
from typing import Any

_NOWHERE = "(unknown file)"
"""The path in a record whose caller was not looked up."""
_USUAL = logging.LogRecord("", logging.NOTSET, _NOWHERE, 0, "", (), None)
_COUNTS_FROM = _USUAL.created - _USUAL.relativeCreated / 1000
"""The moment that every record's `relativeCreated` counts from."""


class LeanRecord(logging.LogRecord):
    """All attributes of `logging.LogRecord`; thread, process and task are None where no caller is looked up.

    For `logging.setLogRecordFactory`. The usual record splits a path, also one that is not known.
    """

    OWN = len(vars(_USUAL))
    """How many attributes it has before those that come with `extra`."""

    def __init__(self, *made_of: Any, **more: Any) -> None:  # noqa: ANN401 - see `logging.LogRecord`
        """Takes what `logging.LogRecord` takes; what has a caller or arguments is made as there."""
        if len(made_of) != 9 or made_of[2] != _NOWHERE or made_of[5]:  # its path and its arguments
            super().__init__(*made_of, **more)
            return
        (
            self.name,
            self.levelno,
            self.pathname,
            self.lineno,
            self.msg,
            self.args,
            self.exc_info,
            self.funcName,
            self.stack_info,
        ) = made_of
        self.levelname = logging.getLevelName(self.levelno)
        self.filename = self.module = _NOWHERE
        self.exc_text = self.thread = self.threadName = self.process = self.processName = None
        self.created = now = time.time()  # noqa: TID251 - what the line shows, and nothing else
        self.msecs = int((now - int(now)) * 1000) + 0.0
        self.relativeCreated = (now - _COUNTS_FROM) * 1000
        if sys.version_info >= (3, 12):
            self.taskName = None
