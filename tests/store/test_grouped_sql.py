"""What goes to PostgreSQL for a group: the statement, and the arguments that belong to it."""

import json
import re
from dataclasses import dataclass

import pytest
from sqlalchemy import Table

from dispatcher.identifiers import RequestId
from dispatcher.store.changes import ChangeSet, Pile
from dispatcher.store.grouped_sql import (
    Argument,
    documents,
    guards_document,
    insert_text,
    shape_of,
    update_text,
)
from dispatcher.store.layout import INSERTED, UPDATED, Layout
from dispatcher.store.recent import Stored
from dispatcher.store.tables import attempts, requests, results, tasks
from tests.conformance.store.ledger_requests import collect, offer_of

NOW = 1_000_000


@dataclass(frozen=True)
class Group:
    """Two requests and what is sent for them."""

    piles: tuple[tuple[Table, Pile], ...]
    text: str
    arguments: list[Argument]

    def of(self, table: Table) -> Pile:
        return dict(self.piles)[table]


def accepted() -> Group:
    changes = ChangeSet(NOW)
    for name in ("b", "a"):
        step = offer_of(request_id=RequestId(name)).build(NOW)
        changes.add_new(step.state)
        changes.add_records(step)
    piles = tuple(changes.rows())
    return Group(piles, insert_text(shape_of(piles)), documents(piles))


def updated() -> Group:
    changes = ChangeSet(NOW)
    for name in ("b", "a"):
        before = offer_of(request_id=RequestId(name)).build(NOW).state
        step = collect("done")(before, NOW)
        changes.add_records(step)
        changes.add(Stored(before, 0), step.state)
    piles = tuple(changes.rows())
    return Group(piles, update_text(shape_of(piles)), [guards_document(changes.guards), *documents(piles)])


def columns_of(text: str, opening: str) -> tuple[list[int], list[str]]:
    """The numbers of the arguments behind `opening`, and the columns that they become."""
    part = text[text.index(opening) :]
    part = part[: part.index(" AS v(")]
    named = text[text.index(opening) + len(part) :]
    numbers = [int(found) for found in re.findall(r"\$(\d+)", part)]
    return numbers, re.findall(r'"(\w+)"', named[: named.index(")")])


def sent_rows(group: Group, opening: str) -> list[dict[str, object]]:
    """The rows as the server reads them: columns by name, what is left out as None."""
    numbers, names = columns_of(group.text, opening)
    first, *beside = (group.arguments[number - 1] for number in numbers)
    assert isinstance(first, str)
    part = group.text[group.text.index(opening) :]
    keys = re.findall(r'"(\d+)" \w+', part[: part.index(" AS v(")])
    found = []
    for place, short in enumerate(json.loads(first)):
        assert None not in short.values()
        values = [*(short.get(key) for key in keys), *(texts[place] for texts in beside)]
        found.append(dict(zip(names, values, strict=True)))
    return found


def stored_rows(layout: Layout, rows: list[tuple[object, ...]]) -> list[dict[str, object]]:
    return [dict(zip(layout.names, layout.stored(row), strict=True)) for row in rows]


@pytest.mark.parametrize("group", [accepted(), updated()], ids=["accepted", "updated"])
def test_a_statement_has_a_place_for_each_argument(group: Group):
    numbers = sorted({int(found) for found in re.findall(r"\$(\d+)", group.text)})

    assert numbers == list(range(1, len(group.arguments) + 1))


@pytest.mark.parametrize("table", [requests, tasks, attempts], ids=str)
def test_new_rows_arrive_as_they_are_to_be_stored(table: Table):
    group = accepted()

    sent = sent_rows(group, f"INSERT INTO {table.name} ")

    assert sent == stored_rows(INSERTED[table], group.of(table).inserts)


@pytest.mark.parametrize("table", [requests, tasks, attempts], ids=str)
def test_changed_rows_arrive_as_they_are_to_be_stored(table: Table):
    group = updated()

    sent = sent_rows(group, f"UPDATE {table.name} t ")

    assert sent == stored_rows(UPDATED[table], group.of(table).updates)


def test_long_texts_are_no_part_of_the_json():
    group = updated()

    numbers, _ = columns_of(group.text, f"INSERT INTO {results.name} ")
    short, texts = (group.arguments[number - 1] for number in numbers)

    assert texts == ['{"text":"done"}'] * 2
    assert "done" not in short
