"""What a process writes on standard error once its logs are configured."""

import subprocess
import sys

import orjson
import pytest

PROGRAM = """
import logging, sys, threading
from dispatcher.observe.log import configure_logging

configure_logging("info", as_json=sys.argv[1] == "json")
logger = logging.getLogger("dispatcher.test")
logger.debug("never.shown")
logger.info("task.decided", extra={"task_id": "t", "score": 0.5})
logging.getLogger("aiosqlite").info("never shown")
logging.getLogger("somebody.else").warning("%s of %d", "one", 2)
thread = threading.Thread(target=logger.info, args=("from.a_thread",))
thread.start()
thread.join()
logger.info("where", stack_info=True)
remote = {"name": "remote", "msg": "received", "levelno": 20, "levelname": "INFO"}
logging.getLogger().handle(logging.makeLogRecord(remote))
try:
    raise ValueError("bad")
except ValueError:
    logger.exception("loop.failed", extra={"loop": "relay"})
"""
FACTORY = """
import logging
from dispatcher.observe.log import configure_logging

class Traced(logging.LogRecord):
    def __init__(self, *made_of):
        self.trace_id = "7"
        super().__init__(*made_of)

logging.setLogRecordFactory(Traced)
configure_logging("info", as_json=True)
logging.getLogger("dispatcher.test").info("task.decided", extra={"task_id": "t"})
"""


def written(program: str, *arguments: str) -> str:
    """What the program writes on standard error."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, check=True, text=True, capture_output=True, timeout=60).stderr


@pytest.fixture(scope="module")
def lines() -> list[dict[str, object]]:
    return [orjson.loads(line) for line in written(PROGRAM, "json").splitlines()]


def test_each_event_is_one_line(lines):
    shown = [(line["event"], line["level"], line["logger"]) for line in lines]

    assert shown == [
        ("task.decided", "info", "dispatcher.test"),
        ("one of 2", "warning", "somebody.else"),
        ("from.a_thread", "info", "dispatcher.test"),
        ("where", "info", "dispatcher.test"),
        ("received", "info", "remote"),
        ("loop.failed", "error", "dispatcher.test"),
    ]


def test_a_line_has_its_facts_and_nothing_else(lines):
    assert [list(line) for line in lines[:3]] == [
        ["event", "level", "logger", "timestamp", "task_id", "score"],
        ["event", "level", "logger", "timestamp"],
        ["event", "level", "logger", "timestamp"],
    ]
    assert "ValueError: bad" in lines[-1]["exception"]
    assert lines[-1]["loop"] == "relay"


def test_the_readable_lines_say_the_same():
    text = written(PROGRAM, "readable")

    for word in ("task.decided", "task_id", "one of 2", "from.a_thread", "received", "ValueError: bad"):
        assert word in text
    assert "never" not in text


def test_records_that_somebody_else_makes_stay_theirs():
    line = orjson.loads(written(FACTORY))

    assert (line["trace_id"], line["task_id"]) == ("7", "t")
