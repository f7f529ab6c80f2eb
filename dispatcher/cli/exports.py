"""`dispatcher export` and `dispatcher gaps`: decisions and what they teach, as files and groups."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import orjson

from dispatcher.assembly.encoders import load_embedder
from dispatcher.assembly.storage import open_storage
from dispatcher.cli.history import entries
from dispatcher.cli.terminal import folding_table, terminal
from dispatcher.errors import ConfigurationError
from dispatcher.routing.decision import Rejection
from dispatcher.settings import load_settings
from dispatcher.store.agents import SqlAgents
from dispatcher.tuning.decision_log import Entry, entry_line
from dispatcher.tuning.gaps import encode_in_pieces, find_gaps
from dispatcher.tuning.labels import Unsure, labels, unsure
from dispatcher.tuning.registered import agent_rows


async def export(config: Path | None, *, period: tuple[str, str], out: Path, as_parquet: bool) -> None:
    """Write decisions with their texts; JSON lines go page by page, Parquet is made in memory."""
    settings = load_settings(config)
    with _new_file(out) as file:
        async with entries(settings, period) as decided:
            count = await (_write_parquet if as_parquet else _write_lines)(decided, file)
    terminal().print(f"{count} decisions in {out}; they hold what users wrote")


async def export_unsure(
    config: Path | None, *, period: tuple[str, str], out: Path, margin: float, height: float
) -> None:
    """Write texts that people should label, one JSON object a line."""
    settings = load_settings(config)
    with _new_file(out) as file:
        async with entries(settings, period) as decided:
            found = unsure([entry async for entry in decided], margin=margin, height=height)
        for one in found:
            file.write(orjson.dumps(_question(one), option=orjson.OPT_APPEND_NEWLINE))
    counts = Counter(one.reason for one in found)
    terminal().print(f"{len(found)} texts in {out}: {dict(sorted(counts.items()))}")


async def export_labelled(config: Path | None, *, period: tuple[str, str], out: Path) -> None:
    """Write what feedback teaches as rows of an evaluation set."""
    settings = load_settings(config)
    count = 0
    with _new_file(out) as file:
        async with entries(settings, period) as decided:
            for label in labels([entry async for entry in decided]):
                agents = [label.capability] if label.capability else []
                row = {"text": label.text, "lang": label.language, "agents": agents}
                file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
                count += 1
    terminal().print(f"{count} labelled texts in {out}")


async def export_agents(config: Path | None, *, out: Path) -> None:
    """Write the registered capabilities as the agents of an evaluation set."""
    settings = load_settings(config)
    with _new_file(out) as file:
        async with open_storage(settings) as database:
            rows = agent_rows((await SqlAgents(database).load()).agents)
        file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    terminal().print(f"{len(rows)} capabilities in {out}")


async def show_gaps(config: Path | None, *, period: tuple[str, str], nearness: float, least: int) -> None:
    """Print groups of refused texts that mean the same, the largest first."""
    settings = load_settings(config)
    async with entries(settings, period) as decided:
        refused = [
            entry.decision.text
            async for entry in decided
            if entry.decision.reason == Rejection.BELOW_SCOPE_FLOOR.value
        ]
    vectors = encode_in_pieces(load_embedder(settings.encoder), refused)
    table = folding_table("requests", "closeness", "texts")
    for gap in find_gaps(refused, vectors, nearness=nearness, least=least):
        table.add_row(str(gap.count), f"{gap.closeness:.2f}", "\n".join(gap.texts))
    terminal().print(f"refused texts: {len(refused)}")
    if table.row_count:
        terminal().print(table)


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that was not there; what can't be finished is not left half written."""
    try:
        file = path.open("xb")
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} can't be made: {error.strerror}") from None
    try:
        with file:
            yield file
    except BaseException:
        path.unlink()
        raise


async def _write_lines(decided: AsyncIterator[Entry], file: IO[bytes]) -> int:
    count = 0
    async for entry in decided:
        file.write(entry_line(entry))
        count += 1
    return count


async def _write_parquet(decided: AsyncIterator[Entry], file: IO[bytes]) -> int:
    try:
        from dispatcher.tuning.frame import write_parquet
    except ImportError:
        raise ConfigurationError(
            "Parquet needs the extra `notebooks`; --format jsonl needs nothing"
        ) from None
    return write_parquet([entry async for entry in decided], file)


def _question(one: Unsure) -> dict[str, object]:
    """`agents` is for the label: the names of the right capabilities, none for out of scope."""
    stored = one.entry.stored
    return {
        "text": stored.decision.text,
        "lang": one.entry.language,
        "agents": None,
        "reason": one.reason,
        "options": [{"capability": name, "cosine": cosine} for name, cosine in one.options],
        "margin": one.margin,
        "height": one.height,
        "request_id": stored.request_id,
        "position": stored.position,
    }
