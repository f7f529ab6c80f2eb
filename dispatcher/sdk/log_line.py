"""Log lines for a terminal: time, level, event, and the event's facts as `name=value`."""

import logging

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogLine(logging.Formatter):
    """One line for each record; a traceback follows where there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """The line without a traceback."""
        facts = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        return " ".join(
            [super().formatMessage(record), *(f"{name}={value}" for name, value in facts.items())]
        )
