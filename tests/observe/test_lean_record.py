"""A lean record is one of the standard library's, to whoever reads it."""

import logging
from collections.abc import Iterator

import pytest

from dispatcher.observe.lean_record import LeanRecord
from dispatcher.observe.log import JsonFormatter

EVENT = ("dispatcher.test", logging.INFO, "(unknown file)", 0, "task.decided", (), None, "(unknown function)")
TIMES = {"created", "msecs", "relativeCreated"}
LOOKED_UP = {"logThreads", "logProcesses", "logMultiprocessing", "logAsyncioTasks", "_srcfile"} & vars(
    logging
).keys()


@pytest.fixture(autouse=True)
def _looks_up_what_a_gateway_does() -> Iterator[None]:
    usual = {name: getattr(logging, name) for name in LOOKED_UP}
    vars(logging).update(dict.fromkeys(LOOKED_UP))
    yield
    vars(logging).update(usual)


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    usual = logging.getLogRecordFactory()
    logging.setLogRecordFactory(LeanRecord)
    logger = logging.getLogger("dispatcher.test")
    logger.setLevel(logging.INFO)
    yield logger
    logging.setLogRecordFactory(usual)


def says(record: logging.LogRecord) -> list[tuple[str, object]]:
    return sorted((name, value) for name, value in vars(record).items() if name not in TIMES)


@pytest.mark.parametrize(
    "made_of",
    [
        (*EVENT, None),
        (*EVENT, "Stack (most recent call last): …"),
        (*EVENT[:6], (ValueError, ValueError("bad"), None), "work", None),
        (*EVENT[:1], 17, *EVENT[2:], None),
        (
            "uvicorn.error",
            logging.WARNING,
            "/srv/uvicorn/server.py",
            80,
            "Started %d",
            (7,),
            None,
            "run",
            None,
        ),
        (*EVENT[:4], "%(n)d of %(all)d", ({"n": 1, "all": 2},), None, "work", None),
        (None, None, "", 0, "", (), None, None),
    ],
)
def test_all_attributes_are_those_of_a_usual_record(made_of):
    lean, usual = LeanRecord(*made_of), logging.LogRecord(*made_of)

    assert says(lean) == says(usual)
    assert vars(lean).keys() == vars(usual).keys()
    assert len(vars(lean)) == LeanRecord.OWN
    assert lean.getMessage() == usual.getMessage()


def test_its_times_count_as_those_of_a_usual_record():
    lean, usual = LeanRecord(*EVENT, None), logging.LogRecord(*EVENT, None)

    assert lean.msecs == int(lean.created % 1 * 1000)
    counts_from = lean.created - lean.relativeCreated / 1000
    assert counts_from == pytest.approx(usual.created - usual.relativeCreated / 1000, abs=1e-3)


def test_a_record_made_of_a_dictionary_keeps_it():
    assert logging.makeLogRecord({"msg": "received", "agent_id": "a"}).__dict__["agent_id"] == "a"


def test_formats_of_others_and_captured_logs_read_it(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
):
    caplog.handler.setFormatter(
        logging.Formatter(
            "%(levelname)-8s %(name)s:%(filename)s:%(lineno)d %(module)s %(funcName)s %(message)s"
        )
    )

    logger.info("task.decided", extra={"task_id": "t"})

    assert [vars(record)["task_id"] for record in caplog.records] == ["t"]
    assert caplog.text == (
        "INFO     dispatcher.test:(unknown file):0 (unknown file) (unknown function) task.decided\n"
    )


def test_its_json_line_is_that_of_a_usual_record():
    facts = {"task_id": "t", "score": None, "asctime_s": 1}
    lean, usual = LeanRecord(*EVENT, None), logging.LogRecord(*EVENT, None)
    for record in (lean, usual):
        vars(record).update(facts)
        logging.Formatter("%(asctime)s %(message)s").format(record)  # leaves `asctime` and `message` in it
        record.created = 1e9

    assert JsonFormatter().format(lean) == JsonFormatter().format(usual)
    assert JsonFormatter().format(lean) == (
        '{"event":"task.decided","level":"info","logger":"dispatcher.test",'
        '"timestamp":"2001-09-09T01:46:40Z","task_id":"t","score":null,"asctime_s":1}'
    )


def test_an_event_may_bring_a_trace(logger: logging.Logger, caplog: pytest.LogCaptureFixture):
    logger.error("loop.failed", exc_info=ValueError("bad"), extra={"loop": "relay"})

    (record,) = caplog.records
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)
    assert "ValueError: bad" in JsonFormatter().format(record)


def test_a_fact_that_hides_an_attribute_is_refused(logger: logging.Logger):
    with pytest.raises(KeyError, match="filename"):
        logger.info("odd", extra=dict.fromkeys(["filename"]))
