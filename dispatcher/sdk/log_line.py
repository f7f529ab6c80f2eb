"""Log lines for a terminal: time, level, event, and the event's facts as `name=value`."""

import logging
import time

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogLine(logging.Formatter):
    """One line for each record; a traceback follows where there is one."""

    def __init__(self) -> None:
        super().__init__()
        self._second = 0
        self._date = ""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`, whose own way through its styles costs three times as much."""
        words = [self.formatTime(record), record.levelname, record.getMessage()]
        words += [f"{name}={value}" for name, value in vars(record).items() if name not in _STANDARD]
        lines = [" ".join(words)]
        if record.exc_info:
            lines.append(self.formatException(record.exc_info))
        if record.stack_info:
            lines.append(self.formatStack(record.stack_info))
        return "\n".join(lines)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - the library's name
        """Local time with milliseconds; the date is made once a second."""
        if self._second != int(record.created):
            self._second = int(record.created)
            self._date = time.strftime(self.default_time_format, self.converter(record.created))
        return f"{self._date},{int(record.msecs):03d}"
