"""The command line of an agent that runs alone."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from dispatcher.sdk.agent import Agent, checked_name
from dispatcher.sdk.log_line import LogLine
from dispatcher.sdk.main import host_name, read_command_line, run

BROKER = "amqp://guest:secret@127.0.0.1:1/"


def test_options_have_sensible_defaults():
    options = read_command_line(Agent("tester"), ["--broker", BROKER])

    assert (options.prefix, options.inbox, options.instance) == ("ard", None, host_name())
    assert (options.key, options.environment) == (None, None)


def test_the_inbox_may_be_a_file():
    options = read_command_line(Agent("tester"), ["--broker", BROKER, "--inbox", "sqlite:state/a:b.sqlite"])

    assert options.inbox == Path("state/a:b.sqlite")


def test_the_inbox_may_be_a_database():
    url = "postgresql://agent:secret@db/agents"

    assert read_command_line(Agent("tester"), ["--broker", BROKER, "--inbox", url]).inbox == url


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["--broker", "http://127.0.0.1/"],
        ["--broker", "amqp://"],
        ["--broker", BROKER, "--inbox", "sqlite:"],
        ["--broker", BROKER, "--inbox", "redis:x"],
        ["--broker", BROKER, "--inbox", "postgresql:"],
    ],
)
def test_a_wrong_command_line_exits_2(line, capsys):
    with pytest.raises(SystemExit) as caught:
        read_command_line(Agent("tester"), line)

    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_a_host_name_becomes_an_instance_name():
    assert checked_name(host_name(), "instance name") == host_name()


def test_what_cannot_run_exits_1_with_one_sentence(capsys):
    with pytest.raises(SystemExit) as caught:
        run(Agent("tester"), ["--broker", BROKER])

    assert caught.value.code == 1
    assert capsys.readouterr().err == (
        "tester: agent tester can't be declared: an agent needs at least one handler (configuration)\n"
    )


def test_log_lines_show_the_event_with_its_facts():
    record = logging.LogRecord("dispatcher.sdk", logging.INFO, __file__, 1, "task.done", (), None)
    record.capability = "work.do"

    line = LogLine().format(record)

    assert line.endswith("INFO task.done capability=work.do")


def test_log_lines_begin_with_local_time_to_the_millisecond():
    formatter, record = LogLine(), logging.LogRecord("x", logging.INFO, __file__, 1, "task.done", (), None)
    usual = logging.Formatter("%(asctime)s %(levelname)s %(message)s")

    for record.created, record.msecs in [(1e9, 0.0), (1e9 + 0.5, 500.0), (1e9 + 61.007, 7.0)]:
        assert formatter.format(record) == usual.format(record)


def test_log_lines_keep_tracebacks():
    error = ValueError("why")
    record = logging.LogRecord("x", logging.ERROR, __file__, 1, "task.failed", (), (ValueError, error, None))

    assert LogLine().format(record).endswith("ValueError: why")


def test_log_lines_keep_a_stack():
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "task.done", (), None, sinfo="Stack: here")

    assert LogLine().format(record).splitlines()[1:] == ["Stack: here"]


AUTHORS_OWN = """
import logging, sys
from dispatcher.sdk.main import _configure_logging

class Traced(logging.LogRecord):
    def __init__(self, *made_of):
        self.trace_id = "7"
        super().__init__(*made_of)

logging.setLogRecordFactory(Traced)
form = "%(trace_id)s %(module)s %(threadName)s %(message)s"
logging.basicConfig(format=form, level="INFO", stream=sys.stderr)
_configure_logging()
logging.getLogger("author").info("hello")
"""


def test_logs_that_the_agents_author_set_up_stay_as_they_are():
    ran = subprocess.run(
        [sys.executable, "-c", AUTHORS_OWN], check=True, text=True, capture_output=True, timeout=60
    )

    assert ran.stderr == "7 <string> MainThread hello\n"
