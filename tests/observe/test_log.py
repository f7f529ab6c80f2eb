import io
import logging

import orjson
import pytest

from dispatcher.observe.log import JsonFormatter


@pytest.fixture
def lines():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("dispatcher.test")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield logger, lambda: [orjson.loads(line) for line in stream.getvalue().splitlines()]
    logger.removeHandler(handler)


def test_a_line_has_event_level_logger_time_and_facts(lines):
    logger, written = lines

    logger.info("task.decided", extra={"task_id": "t", "score": 0.5})

    (line,) = written()
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "task.decided",
        "level": "info",
        "logger": "dispatcher.test",
        "task_id": "t",
        "score": 0.5,
    }


def test_a_trace_is_part_of_the_same_line(lines):
    logger, written = lines

    logger.error("loop.failed", exc_info=ValueError("bad"))

    (line,) = written()
    assert "ValueError: bad" in line["exception"]


@pytest.mark.parametrize("fact", [2**70, object(), {1: "one"}, {"a", "b"}])
def test_whatever_a_fact_is_the_line_is_written(lines, fact):
    logger, written = lines

    logger.warning("odd", extra={"fact": fact})

    (line,) = written()
    assert "fact" in line
