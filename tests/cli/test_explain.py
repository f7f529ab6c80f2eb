"""Commands that ask a running dispatcher: everything is shown, nothing is cut, refusals say where."""

import json
from subprocess import CompletedProcess

import pytest

from dispatcher.cli.explain import _verdict

pytestmark = pytest.mark.xdist_group("explain")  # one dispatcher, not one per process


def rows(text: str) -> list[list[str]]:
    """The cells of every table row."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]


def said(result: CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def declaration(tmp_path):
    """A file with the declaration of an agent that is not registered."""
    capability = {
        "name": "weather.now",
        "descriptions": ["Tells the weather right now"],
        "examples": ["is it raining", "how warm is it", "will it snow"],
        "idempotent": True,
    }
    file = tmp_path / "declaration.json"
    file.write_text(json.dumps({"agent_id": "weather", "capabilities": [capability]}), encoding="utf-8")
    return file


def test_a_route_shows_every_candidate_with_its_factors_or_why_not(asking):
    text = said(asking("route", "where is my order"))

    order, promotion = sorted(rows(text))[:2]
    assert "“where is my order” → " in text
    assert (order[:2], promotion[:2]) == (["order", "order.query"], ["promotion", "promotion.quote"])
    assert all(0 <= float(factor) <= 1 for factor in order[2:6])
    assert all(row[-1] for row in (order, promotion))
    assert "…" not in text


@pytest.mark.parametrize("text", ["[red]hello[/red]", "[/nothing] :smile: hello"])
def test_what_looks_like_markup_is_shown_as_it_was_typed(asking, text):
    assert text in " ".join(said(asking("route", text)).split())


def test_a_trial_shows_the_score_that_decides_the_order(asking, declaration):
    text = said(asking("agents", "try", str(declaration), "is it raining", "where is my order"))

    scores = [float(row[2]) for row in rows(text)[:3]]
    assert "“is it raining”: rank 1, " in " ".join(text.split())
    assert rows(text)[0][:2] == ["1", "weather.now"]
    assert scores == sorted(scores, reverse=True)
    assert {row[1] for row in rows(text)} == {"weather.now", "order.query", "promotion.quote"}


def test_an_intent_that_a_language_model_advised_on_says_so():
    decision = {"outcome": "selected", "reason": "highest_score", "capability": "order.query"}

    assert _verdict(decision) == "order.query (selected, highest_score)"
    assert _verdict({**decision, "advice": ["split", "choice"]}) == (
        "order.query (selected, highest_score, split by a language model, choice by a language model)"
    )


def test_an_intent_for_nobody_names_the_nearest_capability(asking):
    text = said(asking("route", "how do black holes form"))

    verdict = "→ nobody (out_of_scope, below_scope_floor, nearest: "
    assert verdict in text


def test_a_trial_takes_an_agent_of_a_module_and_a_declaration_with_its_id_beside_it(asking, declaration):
    flat = json.loads(declaration.read_text(encoding="utf-8"))
    agent_id = flat.pop("agent_id")
    beside = said(asking("agents", "try", str(declaration), "is it raining"))
    declaration.write_text(json.dumps({"agent_id": agent_id, "declaration": flat}), encoding="utf-8")

    assert said(asking("agents", "try", str(declaration), "is it raining")) == beside
    module = said(asking("agents", "try", "agents.logistics:agent", "parcel tracking: which courier has it"))
    assert rows(module)[0][1] == "logistics.track"
    assert "ranking" in module
    missing = asking("agents", "try", "agents.nobody:agent", "hi")
    assert missing.stderr == "error: there is no module 'agents.nobody'\n"


def test_agents_are_listed_one_a_line(asking):
    listed = {row[0]: row[1:] for row in rows(said(asking("agents", "list")))}

    assert listed["order"][:3] == ["alive", "0/8", "1"]
    assert listed["promotion"][3] == "promotion.quote"


def test_a_refused_body_says_where_and_why(asking):
    result = asking("route", "  ")

    assert (result.returncode, result.stdout) == (1, "")
    assert "/message: Must hold at least one visible character." in result.stderr


def test_a_refused_declaration_says_where_and_why(asking, declaration):
    declaration.write_text('{"capabilities": [{"name": "Weather"}]}', encoding="utf-8")

    result = asking("agents", "try", str(declaration), "hi")

    assert "/declaration/capabilities/0/name: " in result.stderr
    assert "/declaration/capabilities/0/descriptions: Field required" in result.stderr


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_file_that_holds_no_declaration_is_one_clear_sentence(asking, tmp_path, text):
    (tmp_path / "broken.json").write_text(text)

    result = asking("agents", "try", str(tmp_path / "broken.json"), "hi")

    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert "broken.json" in result.stderr


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nowhere"])
def test_nobody_at_the_address_is_one_clear_sentence(command, url):
    result = command("agents", "list", "--url", url)

    assert result.returncode == 1
    assert result.stderr.startswith("error: no ")
    assert url in result.stderr
    assert len(result.stderr.splitlines()) == 1
