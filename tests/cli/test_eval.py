"""`dispatcher eval` as a process: figures as JSON or as tables, and one sentence where it can't run."""

import json
from pathlib import Path

import pytest

from dispatcher.cli.eval_options import EvalOptions
from dispatcher.cli.eval_run import prepare
from dispatcher.cli.eval_table import ORIGIN, print_report
from tests.tuning.sets import agent, request, shop, write

NAMES = {
    *("top1", "top3", "oos_auroc", "oos_rejected", "in_scope_lost", "ece", "overturned", "mean_load"),
    *("multi_exact", "multi_f1", "ms_p50", "ms_p95"),
}


@pytest.fixture
def folder(tmp_path):
    return shop(tmp_path / "shop")


def test_json_is_one_object_with_every_figure(command, folder):
    result = command("eval", str(folder), "--json", "--examples", "5")

    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report.keys() > NAMES
    assert report["versions"]["encoder"].startswith("hashing")
    assert report["versions"]["index"].startswith("faiss")
    assert report["versions"]["data"].keys() > {"shop/pool.jsonl"}
    assert report["examples"] == 15


def test_tables_show_each_figure_with_its_interval_or_why_it_is_left_out(command, tmp_path, folder):
    other = write(tmp_path / "other", eval=[request("my order? the weather?", "Order", "weather", parts=[])])

    shown = command("eval", str(other), "--agents", str(folder / "agents.jsonl")).stdout
    whole = command("eval", str(folder)).stdout

    rows = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in shown.splitlines() if "│" in line}
    assert [cell.strip() for cell in rows["top1"]] == ["-", "no requests for one thing", "0"]
    assert rows["multi_exact"][1].split()[1] == "to"
    assert "language en" in whole
    language = next(line.split("│")[2:-1] for line in whole.splitlines() if "language en" in line)
    assert [cell.strip() for cell in language] == ["12", "1.000", "0.757 to 1.000", "0.000", "0.000 to 0.242"]
    assert "repeated_texts: 0" in whole
    assert "not_measured" not in whole
    assert "code: 0." in whole


def test_drawn_registries_have_a_report_of_their_own(command, folder):
    arguments = ("--registry-size", "2", "--replicas", "2", "--twins", "1", "--draws", "3")

    shown = command("eval", str(folder), *arguments)
    report = json.loads(command("eval", str(folder), *arguments, "--json").stdout)

    assert shown.returncode == 0, shown.stderr
    assert "changed by replicas and twins" in shown.stdout
    assert len(report["draws"]) == 3
    assert report.keys() >= {"lost", "far", "near", "worst", "changed", "versions"}


def test_a_registry_drawn_again_and_again_shows_its_value_and_why_there_is_no_interval(command, folder):
    shown = command("eval", str(folder), "--registry-size", "3", "--draws", "12").stdout

    (cells,) = (line.split("│")[2:-1] for line in shown.splitlines() if "│ top1" in line and "of" in line)
    assert cells[0].strip() == "1.000"
    assert cells[1].strip() == "no interval: 1 different registries drawn, of 10 needed"
    assert cells[2].strip() == "12"


def test_the_worst_agents_are_those_that_are_bad_for_certain(capsys):
    def group(of, top1, high):
        intervals = {"top1": [0.0, high], "in_scope_lost": [0.0, 0.1]}
        return {"of": of, "top1": top1, "in_scope_lost": 0.0, "intervals": intervals}

    named = {"once": group(1, 0.0, 0.79), "often": group(100, 0.3, 0.4), "fine": group(50, 0.9, 0.96)}
    print_report(
        {
            "report": "eval",
            "left_out": {},
            "intervals": {},
            "confusions": [],
            "by_agent": named,
            "by_language": {},
            "versions": {},
            **dict.fromkeys(ORIGIN, 0),
        }
    )

    shown = capsys.readouterr().out
    assert shown.index("often") < shown.index("once") < shown.index("fine")


def test_a_language_models_advice_is_said_not_to_be_measured(command, tmp_path, folder):
    config = tmp_path / "config.yaml"
    config.write_text("llm: {url: http://127.0.0.1:9/v1/chat/completions, model: m}", encoding="utf-8")

    report = json.loads(command("eval", str(folder), "--config", str(config), "--json").stdout)

    assert report["not_measured"] == ["llm.url: a language model's advice on splitting and ties"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"folder": Path("nowhere")}, "the data set 'nowhere' is not a folder"),
        ({"agents": Path("nothing")}, "the file 'nothing' can't be read: No such file or directory"),
        ({"encoder": "crystal"}, "encoder.name"),
        ({"encoder": "hashing:large"}, "the encoder 'hashing' takes no 'model'"),
        ({"twins": 2}, "--replicas and --twins go with --registry-size"),
        ({"registry_size": 2, "twins": 3}, "--twins can't be more than --registry-size"),
        ({"registry_size": 9}, "the data set has 3 capabilities, not 9"),
        ({"config": Path("nothing")}, "the configuration file 'nothing' does not exist"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_and_status_2(folder, capsys, given, sentence):
    with pytest.raises(SystemExit) as raised:
        prepare(EvalOptions(**({"folder": folder} | given)))

    shown = capsys.readouterr()
    assert raised.value.code == 2
    assert shown.err.startswith("error: ")
    assert sentence in shown.err
    assert (len(shown.err.splitlines()), shown.out) == (1, "")


def test_an_agent_that_could_not_register_ends_the_command_the_same_way(command, tmp_path):
    unstorable = write(
        tmp_path / "odd", agents=[agent("a", ["\x00"])], eval=[request("hi", "a"), request("ho")]
    )

    result = command("eval", str(unstorable), "--json")

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: a text holds a NUL character\n"


def test_an_agent_that_no_declaration_can_hold_is_one_sentence(command, tmp_path):
    many = write(
        tmp_path / "many", agents=[agent("a", [f"text {at}" for at in range(22)])], eval=[request("hi", "a")]
    )

    result = command("eval", str(many), "--json")

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: 'a' can't be declared: examples: ")
    assert len(result.stderr.splitlines()) == 1


def test_a_label_of_a_capability_that_is_gone_is_refused_by_file_line_and_name(tmp_path, capsys):
    gone = write(tmp_path / "gone", agents=[agent("a")], eval=[request("hi", "a"), request("ho", "left")])

    with pytest.raises(SystemExit):
        prepare(EvalOptions(folder=gone))

    assert "eval.jsonl, line 2: 'agents' names 'left'" in capsys.readouterr().err
