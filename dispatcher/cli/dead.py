"""Commands for dead letters, at a running dispatcher."""

from typing import Any

from dispatcher.cli.terminal import folding_table, terminal
from dispatcher.sdk.client import Client


async def show_all(*, url: str, key: str, **wanted: str | int | bool) -> None:
    """Print dead letters, newest first."""
    async with Client(url, key or None) as client:
        letters = await client.dead_letters(**wanted)
    table = folding_table("id", "cause", "code", "capability", "agent", "attempts", "retried as")
    for letter in letters:
        table.add_row(
            letter["dead_id"],
            letter["cause"],
            letter["error_code"] or "",
            letter["capability"] or "",
            letter["agent_id"] or letter["source"] or "",
            str(letter["attempts"]),
            letter["retried_as"] or "",
        )
    terminal().print(table)


async def show_one(dead_id: str, *, url: str, key: str) -> None:
    """Print one dead letter with its attempts."""
    async with Client(url, key or None) as client:
        letter = await client.dead_letter(dead_id)
    terminal().print_json(data=letter, ensure_ascii=False)


async def do_again(dead_id: str, *, to: str | None, url: str, key: str) -> None:
    """Have a dead task done again and print the new request's id."""
    async with Client(url, key or None) as client:
        request_id = await client.retry(dead_id, agent_id=to)
    terminal().print(f"retried as request {request_id}")


def chosen(**wanted: Any) -> dict[str, str | int | bool]:  # noqa: ANN401  (options of one command)
    """The options that were given."""
    return {name: value for name, value in wanted.items() if value is not None}
