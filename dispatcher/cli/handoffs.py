"""Commands for parts that people do, at a running dispatcher."""

from dispatcher.cli.terminal import folding_table, terminal
from dispatcher.sdk.client import Client


async def show_handoffs(*, answered: bool, limit: int, after: str | None, url: str, key: str) -> None:
    """Print what waits for a person, the oldest first, or what people answered; says if there is more."""
    async with Client(url, key or None) as client:
        page = await client.handoffs(answered=answered, limit=limit, after=after)
    handoffs = page["handoffs"]
    table = folding_table("id", "caller", "asked for", "text", "answer", "answered by")
    for one in handoffs:
        shown = ("task_id", "caller", "described", "text", "answer", "answered_by")
        table.add_row(*(one.get(name) or "" for name in shown))
    terminal().print(table)
    if page["more"] and handoffs:
        terminal().print(f"more exist: --after {handoffs[-1]['task_id']}")


async def give_answer(task_id: str, answer: str, *, url: str, key: str) -> None:
    """Answer one of them."""
    async with Client(url, key or None) as client:
        await client.answer_handoff(task_id, answer)
    terminal().print(f"answered {task_id}")
