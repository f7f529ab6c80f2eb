"""Agents over HTTP that break the contract: rows 36 to 46 of the matrix, and its section 4, rows 40 to 46.

Every row checks that all requests end (R1), at most three attempts and none too many (R7), and what the
history checker checks; the others of `reliability.md` §2 stand in the rows' own words.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.faults.fleet import READY_S, read_journal
from tests.faults.history import Died
from tests.faults.process_memory import peak_mb, resident_mb
from tests.faults.rogue import ALONE, BAD, BRIEF, GOOD, ONCE, SAFE
from tests.faults.row import Fault, Row
from tests.faults.trial import Trial, read_books
from tests.scenario.program import Program

TIMES = {
    "DISPATCHER_HTTP__CONNECT_TIMEOUT_S": "0.3",
    "DISPATCHER_HTTP__READ_TIMEOUT_S": "1",
    "DISPATCHER_HTTP__TOTAL_TIMEOUT_S": "2.5",
}
"""About a tenth of the usual ones."""
PATIENT = {
    **TIMES,
    "DISPATCHER_LIVENESS__HEARTBEAT_S": "1",
    "DISPATCHER_LIVENESS__SUSPECT_AFTER_S": "5",
    "DISPATCHER_LIVENESS__OFFLINE_AFTER_S": "15",
}
"""Who is slow because the machine is must not be gone: that is what row 46 is about."""
ALLOWANCE_MB = 40.0
FORBIDDEN_ENDPOINTS = (
    *("http://10.0.0.1/", "http://192.168.1.1/", "http://169.254.169.254/latest", "http://[fe80::1]/"),
    *("http://0.0.0.0/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/"),
    *("http://[::ffff:10.0.0.1]/", "http://user@127.0.0.1/", "http://127.0.0.1:0/", "http://127.0.0.1/#x"),
)


def _journal(trial: Trial, name: str) -> Path:
    return trial.fleet.folder / f"{name}.jsonl"


@asynccontextmanager
async def rogues(trial: Trial, *options: str) -> AsyncIterator[dict[str, Program]]:
    """Both agents, registered; what they ran belongs to the history."""
    programs: dict[str, Program] = {}
    try:
        for name in (BAD, GOOD):
            command = ("-m", "tests.faults.rogue", name, str(_journal(trial, name)), trial.fleet.urls[0])
            mine = options if name == BAD else ()
            programs[name] = Program(sys.executable, *command, *mine)
        for program in programs.values():
            await asyncio.to_thread(program.wait_for, r"registered", READY_S)
        # The other gateway hears of them by the registry's own ways.
        await trial.clock.sleep(1.5)
        yield programs
    finally:
        for name, program in programs.items():
            program.close()
            trial.load.events += read_journal(_journal(trial, name))


async def _answers(
    trial: Trial, count: int, capability: str, act: str, within_s: float
) -> list[dict[str, Any]]:
    """How so many requests ended, all of them within the time."""
    orders = await trial.load.accepted(count, capability=capability, act=act)
    return [await trial.load.ended(order, within_s) for order in orders]


def _codes(answers: Sequence[dict[str, Any]]) -> set[str | None]:
    return {(answer["parts"][0]["error"] or {}).get("code") for answer in answers}


def _attempts(answers: Sequence[dict[str, Any]]) -> list[int]:
    return [answer["parts"][0]["attempts"] for answer in answers]


async def _agent(url: str, name: str) -> dict[str, Any]:
    async with httpx2.AsyncClient(base_url=url) as client:
        found: dict[str, Any] = (await client.get(f"/v1/agents/{name}")).raise_for_status().json()
        return found


async def _success(trial: Trial, capability: str) -> float:
    """The bad agent's estimate, at the gateway that thinks worst of it."""
    seen = [await _agent(url, BAD) for url in trial.fleet.urls]
    return float(min(agent["success"].get(capability, 1.0) for agent in seen))


async def _fails(trial: Trial, act: str, code: str) -> None:
    """Where it may have run it isn't tried again and counts as a failure; a safe task goes elsewhere."""
    before = await _success(trial, ALONE)
    alone = await _answers(trial, 4, ALONE, act, 6)
    assert _codes(alone) == {code}, f"{act}: {_codes(alone)}, not {code}"
    assert set(_attempts(alone)) == {1}, f"{act}: tried {_attempts(alone)} times"
    assert await _success(trial, ALONE) < before, f"{act}: did not count as a failure"


async def _goes_elsewhere(trial: Trial, act: str, *, may_avoid: bool = False) -> None:
    """An idempotent task is done by the other agent, in its second attempt; or the bad one is avoided."""
    answers = await _answers(trial, 6, SAFE, act, 6)
    assert _codes(answers) == {None}, f"{act}: {_codes(answers)}"
    assert max(_attempts(answers)) <= 2, f"{act}: {_attempts(answers)} attempts"
    assert max(_attempts(answers)) == 2 or may_avoid, f"{act}: nothing was given to the bad agent"


async def connections_refused(trial: Trial) -> None:
    """Row 36 (R1, R7): the next agent at once, whatever the task is; the failure counts."""
    async with rogues(trial, "--closed"):
        before = await _success(trial, ONCE)
        answers = await _answers(trial, 12, ONCE, "answer", 4)
        assert _codes(answers) == {None}
        assert max(_attempts(answers)) == 2, f"{_attempts(answers)} attempts"
        assert await _success(trial, ONCE) < before, "did not count as a failure"
        alone = await _answers(trial, 2, ALONE, "answer", 8)
        assert {answer["parts"][0]["status"] for answer in alone} == {"unavailable"}, alone
        trial.heal()


async def never_answered(trial: Trial) -> None:
    """Row 37 (R7): silence ends the call; the agent may have run."""
    async with rogues(trial):
        await _fails(trial, "silent", "http_read_timeout")
        await _goes_elsewhere(trial, "silent")
        trial.heal()


async def dripped(trial: Trial) -> None:
    """Row 38 (R1): bytes that never stop coming meet the total time, and no second try."""
    async with rogues(trial):
        await _fails(trial, "drip", "http_total_timeout")
        await _goes_elsewhere(trial, "drip")
        trial.heal()


async def cut_short(trial: Trial) -> None:
    """Row 39 (R1, R3): half an answer is none, although the agent ran."""
    async with rogues(trial):
        await _fails(trial, "cut", "http_cut")
        await _goes_elsewhere(trial, "cut")
        trial.heal()


async def too_large(trial: Trial) -> None:
    """Rows 40 and 41 (R10): endless, announced and packed bodies are cut off, and memory stays."""
    pids = [program.pid for program in trial.fleet.gateways.values()]
    async with rogues(trial):
        await _fails(trial, "endless", "http_too_large")
        before = [resident_mb(pid) for pid in pids]
        for act in ("endless", "gigabyte", "bomb"):
            answers = await _answers(trial, 12, ALONE, act, 15)
            assert _codes(answers) == {"http_unreadable" if act == "bomb" else "http_too_large"}, act
        grown = [peak_mb(pid) - known for pid, known in zip(pids, before, strict=True)]
        assert max(grown) < ALLOWANCE_MB, f"the gateways grew by {grown} MB"
        trial.heal()


async def unreadable(trial: Trial) -> None:
    """Row 42 (R4, R13): bad answers end what may have run, each by name, and count."""
    async with rogues(trial):
        for act in ("no json", "wrong schema", "wrong request", "nan"):
            await _fails(trial, act, "http_unreadable")
            await _goes_elsewhere(trial, act, may_avoid=act != "no json")
        trial.heal()


async def failed_politely(trial: Trial) -> None:
    """Row 43 (R6): a business error counts like any other failure."""
    async with rogues(trial):
        await _fails(trial, "business error", "sold_out")
        trial.heal()


async def called_back_late(trial: Trial) -> None:
    """Row 44 (R2): the end stays as it was, the result is kept as late."""
    async with rogues(trial):
        answers = await _answers(trial, 4, BRIEF, "late", 6)
        assert _codes(answers) == {"timeout"}, _codes(answers)
        trial.heal()
        await _until_recorded(trial, {"late": 4})
        assert _callbacks(trial) == [204] * 4


async def contradicted(trial: Trial) -> None:
    """Row 45 (R2, R4): the first counts; a token that doesn't fit is refused and changes nothing."""
    async with rogues(trial):
        answers = await _answers(trial, 4, ALONE, "contradict", 6)
        assert _codes(answers) == {None}
        trial.heal()
        kinds = {"accepted": 4, "duplicate": 4, "conflict": 4, "rejected": 8}
        await _until_recorded(trial, kinds)
        assert sorted(_callbacks(trial)) == [204] * 12 + [403] * 8, _callbacks(trial)


async def answered_and_died(trial: Trial) -> None:
    """Row 46 (R1): the result is kept; the agent goes down by its lease and gets nothing more."""
    async with rogues(trial) as programs:
        (answer,) = await _answers(trial, 1, ALONE, "die", 6)
        assert answer["status"] == "completed", answer
        await asyncio.to_thread(programs[BAD].wait, 10)
        born = json.loads(_journal(trial, BAD).read_text().split("\n")[0])
        trial.load.events.append(Died(time=trial.clock.monotonic(), instance=born["instance"]))
        trial.heal()
        await _until_offline(trial)
        (after,) = await _answers(trial, 1, ALONE, "answer", 6)
        assert after["parts"][0]["status"] == "unavailable", after
        elsewhere = await _answers(trial, 4, ONCE, "answer", 6)
        assert (_codes(elsewhere), set(_attempts(elsewhere))) == ({None}, {1})


async def endpoints_refused(trial: Trial) -> None:
    """Section 4, rows 40 and 43: addresses that must not be called are refused, and why is said."""
    capability = {"name": ALONE, "descriptions": ["Answers over HTTP"], "idempotent": True}
    async with httpx2.AsyncClient(base_url=trial.fleet.urls[0]) as client:
        for endpoint in FORBIDDEN_ENDPOINTS:
            declaration = {"channel": "http", "endpoint": endpoint, "capabilities": [capability]}
            frame = {"agent_id": "mallory", "instance_name": "one", "instance_id": "1"}
            reply = await client.post("/v1/agents", json={**frame, "declaration": declaration})
            said = (reply.status_code, reply.json().get("code"))
            assert said == (422, "endpoint_refused"), f"{endpoint}: {said}"
            assert endpoint not in reply.text
    assert "http.networks_allowed" in trial.fleet.gateways[0].text, "loopback is allowed in silence"


async def _until_offline(trial: Trial) -> None:
    end = trial.clock.monotonic() + 10
    while (await _agent(trial.fleet.urls[1], BAD))["status"]["liveness"] != "offline":
        assert trial.clock.monotonic() < end, "a dead agent's lease did not run out"
        await trial.clock.sleep(0.2)


async def _until_recorded(trial: Trial, kinds: dict[str, int]) -> None:
    end = trial.clock.monotonic() + 10
    while True:
        records = (await read_books(trial.fleet.database_url)).records
        found = {kind: sum(record.kind == kind for record in records) for kind in kinds}
        if found == kinds:
            return
        assert trial.clock.monotonic() < end, f"recorded were {found}, not {kinds}"
        await trial.clock.sleep(0.1)


def _callbacks(trial: Trial) -> list[int]:
    """What the bad agent's callbacks were answered."""
    lines = map(json.loads, _journal(trial, BAD).read_text().split("\n")[:-1])
    return [line["status"] for line in lines if line["event"] == "called back"]


def _row(numbers: str, title: str, fault: Fault, settings: Mapping[str, str] = PATIENT) -> Row:
    return Row(numbers=numbers, title=f"HTTP agent: {title}", fault=fault, settings=settings)


ROWS = (
    _row("36", "refuses connections", connections_refused),
    _row("37", "never answers", never_answered),
    _row("38", "drips for ever", dripped),
    _row("39", "cuts its answer", cut_short),
    _row("40/41", "answers endlessly, hugely, packed", too_large),
    _row("42", "answers what nobody can use", unreadable),
    _row("43", "fails politely", failed_politely),
    _row("44h", "calls back too late", called_back_late),
    _row("45h", "calls back, contradicts itself, forges", contradicted),
    _row("46", "answers and dies", answered_and_died, TIMES),
    _row("s40/s43", "endpoints that must not be called", endpoints_refused),
)
