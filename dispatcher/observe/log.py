"""Logs: one JSON object (or one readable line) per event on standard error.

Rooms log with the standard library: a constant event name as message and facts in `extra`.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from itertools import islice

import orjson
import structlog

from dispatcher.observe.lean_record import LeanRecord
from dispatcher.observe.turn_handler import TurnHandler

QUIET = ("aiosqlite", "alembic", "asyncio", "uvicorn.access", "uvicorn.error")
"""Libraries whose chatter below WARNING helps nobody."""
SILENT = ("aiormq", "aio_pika")
"""Libraries that warn, with a trace, of lost connections, which `amqp` reports in one line itself."""
_OWN = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})
"""What every record has; whatever else one has came with `extra`."""
_KEYS_OF_ANY_TYPE = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def configure_logging(level: str, *, as_json: bool) -> None:
    """Send every record of this process through one formatter; call once, at the start of a process."""
    # What no line of ours shows costs a third of a record; the standard library's own way to leave it out.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - as its documentation says, so that no line looks up its caller
    if logging.getLogRecordFactory() is logging.LogRecord:  # else somebody wants more of a record
        logging.setLogRecordFactory(LeanRecord)
    handler = TurnHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else _readable())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `event`, `level`, `logger`, `timestamp` (UTC), the facts, `exception`.

    By hand, since a line through a chain of processors costs four times as much.
    """

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        line: dict[str, object] = {
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": datetime.fromtimestamp(record.created, UTC),
        }
        own = LeanRecord.OWN if type(record) is LeanRecord else 0  # come first
        for name, fact in islice(vars(record).items(), own, None):
            if name not in _OWN:
                line[name] = fact  # noqa: PERF403 - another dict to take them from costs a seventh of a line
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        try:
            return orjson.dumps(line, default=repr, option=orjson.OPT_UTC_Z).decode()
        except TypeError:
            return _odd(line)


def _odd(line: dict[str, object]) -> str:
    try:
        return orjson.dumps(line, default=repr, option=_KEYS_OF_ANY_TYPE).decode()
    except TypeError:  # an integer beyond 64 bits, or half a surrogate pair
        return json.dumps(line, default=str)


def _readable() -> logging.Formatter:
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )
