"""The agent that is measured with: it answers at once with what it was sent.

`python -m dispatcher.bench.echo --broker URL --prefix NAME` runs it on RabbitMQ.
"""

from pydantic import BaseModel

from dispatcher.sdk import Agent, Reply, run

AT_ONCE = 256
"""Tasks it takes at a time; the bare worker has as many messages in hand."""

AROUND = 324
"""Bytes of a task beside its note."""

KNOWN = {
    "bench.parcel": ("Tells where a parcel is.", ("where is my parcel", "track my parcel", "我的包裹到哪了")),
    "bench.refund": (
        "Pays back what was paid.",
        ("I want my money back", "refund this purchase", "我要申请退款"),
    ),
    "bench.invoice": ("Sends an invoice.", ("send me an invoice", "I need a receipt", "帮我开一张发票")),
    "bench.hours": (
        "Tells opening hours.",
        ("what are your opening hours", "when do you open", "你们几点营业"),
    ),
}
"""Capabilities by name: description and examples, which are also what is asked."""

MESSAGES = tuple(text for _, examples in KNOWN.values() for text in examples)


def note(kilobytes: int) -> str:
    """What makes tasks and results about so large, here and in everything that is compared."""
    return "n" * (kilobytes * 1024 - AROUND)


class Note(BaseModel):
    """Anything, and the same back."""

    note: str = ""


agent = Agent("bench", max_load=AT_ONCE)


async def echo(given: Note) -> Reply[Note]:
    """What every capability does."""
    return Reply(text="done", data=given)


for _name, (_description, _examples) in KNOWN.items():
    agent.handler(_name, description=_description, examples=_examples, idempotent=True)(echo)

if __name__ == "__main__":
    run(agent)
