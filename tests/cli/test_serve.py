"""`dispatcher run` that can't start as it was told."""

from subprocess import CompletedProcess

import pytest

from tests.scenario.program import Program, dispatcher

RUN = ("run", "--development", "--port", "0")


def refused(result: CompletedProcess[str]) -> str:
    assert result.returncode == 1
    assert result.stdout == ""
    (sentence,) = result.stderr.strip().splitlines()
    return sentence


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", "192.0.2.1"])
def test_an_address_that_is_not_ours_is_one_clear_sentence(command, host):
    said = refused(command("run", "--port", "0", "--host", host))

    assert said.startswith(f"error: cannot listen on {host}:0: ")
    assert "Unknown error" not in said


def test_a_broken_configuration_file_is_one_clear_sentence(command, tmp_path):
    (tmp_path / "broken.yaml").write_text("server: [1\n")

    assert "is not YAML" in refused(command(*RUN, "--config", str(tmp_path / "broken.yaml")))


def test_a_wrong_broker_is_one_clear_sentence(command):
    assert "setting 'broker.url'" in refused(command(*RUN, DISPATCHER_BROKER__URL="http://x"))


def test_the_command_line_wins_over_the_file(tmp_path):
    file = tmp_path / "dispatcher.yaml"
    file.write_text(
        f"data_dir: {tmp_path / 'data'}\nencoder: {{name: hashing}}\n"
        "server: {host: 192.0.2.1, port: 1, max_wait_s: 7}\nlog_format: text\n"
    )

    with Program(*dispatcher(*RUN, "--host", "127.0.0.1", "--config", str(file))) as program:
        program.wait_for(r"listening on http://127\.0\.0\.1:\d+")
        shown = program.wait_for("settings.effective")

        assert "7.0" in shown.string
        assert program.stop() == 0
