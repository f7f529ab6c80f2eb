"""`dispatcher export` and `dispatcher gaps`: decisions and what they teach, as files and groups."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import orjson

from dispatcher.assembly.encoders import embedding
from dispatcher.assembly.storage import open_storage
from dispatcher.cli.history import entries, judged_entries, open_history, times
from dispatcher.cli.streamed import consumed
from dispatcher.cli.terminal import folding_table, terminal
from dispatcher.dispatch.fallback import refused_by_floors
from dispatcher.errors import ConfigurationError
from dispatcher.settings import load_settings
from dispatcher.store.agents import SqlAgents
from dispatcher.tuning.basis.registered import exported_rows, texts_left_out
from dispatcher.tuning.decisions.decision_log import Entry, entry_line
from dispatcher.tuning.decisions.gaps import encode_in_pieces, even_sample, find_gaps
from dispatcher.tuning.decisions.labels import Unsure, labels, unsure
from dispatcher.tuning.fitting.calibration_rows import Judgements, of_labels


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
            found = await consumed(decided, partial(unsure, margin=margin, height=height))
        for one in found.texts:
            file.write(orjson.dumps(_question(one), option=orjson.OPT_APPEND_NEWLINE))
    counts = Counter(one.reason for one in found.texts)
    terminal().print(f"{len(found.texts)} texts in {out}: {dict(sorted(counts.items()))}")
    if found.left_out:
        terminal().print(f"{found.left_out} decisions on further texts left out: these are the closest ones")


async def export_labelled(config: Path | None, *, period: tuple[str, str], out: Path) -> None:
    """Write what feedback teaches as rows of an evaluation set, of capabilities that are declared now."""
    settings = load_settings(config)
    with _new_file(out) as file:
        async with open_history(settings) as database:
            declared = {row["id"] for row in exported_rows((await SqlAgents(database).load()).agents)}
            found = await consumed(judged_entries(database, *times(period)), _judgements)
        known = [row for row in found.rows if row.wanted <= declared]
        for row in known:
            document = {"text": row.text, "lang": row.language, "agents": sorted(row.wanted)}
            file.write(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))
    terminal().print(f"{len(known)} labelled texts in {out}")
    for reason, count in found.left_out.items():
        terminal().print(f"{count} left out: {reason}")
    if len(known) < len(found.rows):
        gone = len(found.rows) - len(known)
        terminal().print(f"{gone} left out: nobody declares their capability any more")


async def export_agents(config: Path | None, *, out: Path) -> None:
    """Write the registered capabilities as the agents of an evaluation set."""
    settings = load_settings(config)
    with _new_file(out) as file:
        async with open_storage(settings) as database:
            agents = (await SqlAgents(database).load()).agents
        rows, left_out = exported_rows(agents), texts_left_out(agents)
        file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    terminal().print(f"{len(rows)} capabilities in {out}")
    if left_out:
        terminal().print(f"{left_out} descriptions and examples left out: more than one declaration may hold")


async def show_gaps(config: Path | None, *, period: tuple[str, str], nearness: float, least: int) -> None:
    """Print groups of refused texts that mean the same, the largest first."""
    settings = load_settings(config)
    async with entries(settings, period) as decided:
        sample = await consumed(decided, lambda found: even_sample(_refused(found)))
    with embedding(settings.encoder) as embedder:
        vectors = encode_in_pieces(embedder, sample.texts)
    table = folding_table("requests", "closeness", "texts")
    for gap in find_gaps(sample.texts, vectors, nearness=nearness, least=least):
        table.add_row(str(gap.count), f"{gap.closeness:.2f}", "\n".join(gap.texts))
    terminal().print(f"refused texts: {sample.count}")
    if len(sample.texts) < sample.count:
        terminal().print(f"compared: an even sample of {len(sample.texts)}")
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
        from dispatcher.tuning.analysis.frame import write_parquet
    except ImportError:
        raise ConfigurationError(
            "Parquet needs the extra `notebooks`; --format jsonl needs nothing"
        ) from None
    return await consumed(decided, lambda found: write_parquet(found, file))


def _judgements(entries: Iterator[Entry]) -> Judgements:
    return of_labels(labels(entries))


def _refused(entries: Iterator[Entry]) -> Iterator[str]:
    return (entry.text for entry in entries if refused_by_floors(entry.decision))


def _question(one: Unsure) -> dict[str, object]:
    """`agents` is for the label: the names of the right capabilities, none for out of scope."""
    return {
        "text": one.text,
        "lang": one.language,
        "agents": None,
        "reason": one.reason,
        "options": [{"capability": name, "cosine": cosine} for name, cosine in one.options],
        "margin": one.margin,
        "height": one.height,
        "request_id": one.request_id,
        "position": one.position,
    }
