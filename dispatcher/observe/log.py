"""Logs: one JSON object (or one readable line) per event on standard error.

Rooms log with the standard library: a constant event name as message and facts in `extra`.
"""

import logging
import sys

import structlog

QUIET = ("aiosqlite", "alembic", "asyncio", "uvicorn.access", "uvicorn.error")
"""Libraries whose chatter below WARNING helps nobody."""
SILENT = ("aiormq", "aio_pika")
"""Libraries that warn, with a trace, of lost connections, which `amqp` reports in one line itself."""


def configure_logging(level: str, *, as_json: bool) -> None:
    """Send every record of this process through one formatter; call once, at the start of a process."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL)
