"""Commands for parts that people do, at a running dispatcher."""

from dispatcher.cli.terminal import folding_table, terminal
from dispatcher.sdk.client import Client


async def show_handoffs(*, answered: bool, limit: int, after: str | None, url: str, key: str) -> None:
    """Print what waits for a person, the oldest first, or what people answered; says if there is more."""
    async with Client(url, key or None) as client:
        found = await client.handoffs(answered=answered, limit=limit + 1, after=after)
    handoffs = found[:limit]
    table = folding_table("id", "caller", "text", "answer", "answered by")
    for one in handoffs:
        table.add_row(
            one["task_id"], one["caller"], one["text"], one["answer"] or "", one["answered_by"] or ""
        )
    terminal().print(table)
    if len(found) > limit:
        terminal().print(f"more exist: --after {handoffs[-1]['task_id']}")


async def give_answer(task_id: str, answer: str, *, url: str, key: str) -> None:
    """Answer one of them."""
    async with Client(url, key or None) as client:
        await client.answer_handoff(task_id, answer)
    terminal().print(f"answered {task_id}")
