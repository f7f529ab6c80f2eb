"""The command tree. Importing this loads typer only; each command loads the rest when it runs."""

from typing import Annotated

import typer

from dispatcher.cli.bench import bench
from dispatcher.cli.calibration_commands import calibrations, fit
from dispatcher.cli.decision_commands import export, gaps, replay
from dispatcher.cli.encoders import encoders
from dispatcher.cli.eval import evaluation
from dispatcher.cli.execute import execute
from dispatcher.cli.shared_options import ConfigFile

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
keys = typer.Typer(no_args_is_help=True, help="API keys: who may call, register or administer.")
grants = typer.Typer(no_args_is_help=True, help="Which capabilities a caller may use.")
agents = typer.Typer(no_args_is_help=True, help="Registered agents, and declarations before they are.")
dead = typer.Typer(no_args_is_help=True, help="Dead letters: what did not work, and having it done again.")
handoff = typer.Typer(no_args_is_help=True, help="Parts handed over to people: what waits, and answers.")
app.add_typer(keys, name="keys")
app.add_typer(grants, name="grants")
app.add_typer(agents, name="agents")
app.add_typer(dead, name="dead")
app.add_typer(handoff, name="handoff")
app.add_typer(bench, name="bench")
app.add_typer(encoders, name="encoders")
app.command("eval")(evaluation)
app.command()(replay)
app.command()(fit)
app.add_typer(calibrations, name="calibrations")
app.command()(gaps)
app.add_typer(export, name="export")
app.info.help = "Agent-Reach Dispatcher: decides which agent answers which part of a chat request."

Url = Annotated[str, typer.Option(help="Address of a running dispatcher.")]
Key = Annotated[str, typer.Option(help="API key; none in development mode.", show_default=False)]
LOCAL = "http://127.0.0.1:8080"


@app.command()
def run(
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
    development: Annotated[bool, typer.Option(help="No keys, no grants; loopback only.")] = False,
    agent: Annotated[
        list[str] | None, typer.Option(help="Run an agent in this process: `module:attribute`.")
    ] = None,
) -> None:
    """Serve until interrupted."""
    from dispatcher.cli.start import start

    start(config, host=host, port=port, development=development, agents=tuple(agent or ()))


@app.command()
def upgrade(config: ConfigFile = None) -> None:
    """Bring the database's schema to this version; safe to repeat."""
    from dispatcher.cli.admin import upgrade_schema

    execute(upgrade_schema(config))


@app.command()
def prune(config: ConfigFile = None) -> None:
    """Delete ended rows older than their retention setting."""
    from dispatcher.cli.admin import prune_rows

    execute(prune_rows(config))


@app.command()
def forget(
    user: Annotated[str, typer.Option(help="The user_id to forget.")],
    caller: Annotated[str | None, typer.Option(help="Only in this caller's requests.")] = None,
    config: ConfigFile = None,
) -> None:
    """Remove what was stored for one user."""
    from dispatcher.cli.admin import forget_user

    execute(forget_user(config, user=user, caller=caller))


@app.command()
def route(text: str, url: Url = LOCAL, key: Key = "") -> None:
    """Explain how a message would be split and routed, without sending it."""
    from dispatcher.cli.explain import show_route

    execute(show_route(text, url=url, key=key))


@agents.command("try")
def try_declaration(
    source: Annotated[
        str, typer.Argument(help="The agent as `module:attribute`, or a JSON file: agent_id and declaration.")
    ],
    texts: Annotated[list[str], typer.Argument(help="Messages to rank.")],
    url: Url = LOCAL,
    key: Key = "",
) -> None:
    """Show where a declaration would rank, and against whom, before it is registered."""
    from dispatcher.cli.explain import show_trial

    execute(show_trial(source, texts, url=url, key=key))


@agents.command("list")
def list_agents(url: Url = LOCAL, key: Key = "") -> None:
    """Show the registered agents and how they are."""
    from dispatcher.cli.explain import show_agents

    execute(show_agents(url=url, key=key))


@agents.command("remove")
def remove_agent(agent_id: str, url: Url = LOCAL, key: Key = "") -> None:
    """Remove an agent for good; one that still runs registers again."""
    from dispatcher.cli.explain import remove

    execute(remove(agent_id, url=url, key=key))


@keys.command("create")
def create_key(
    role: Annotated[str, typer.Option(help="caller, agent or admin")],
    subject: Annotated[str, typer.Option(help="The caller's name or the agent's id.")],
    config: ConfigFile = None,
) -> None:
    """Make a key and print it once; only its SHA-256 is stored."""
    from dispatcher.cli.admin import create

    execute(create(config, role=role, subject=subject))


@keys.command("list")
def list_keys(config: ConfigFile = None) -> None:
    """Show all keys without their secrets."""
    from dispatcher.cli.admin import list_all

    execute(list_all(config))


@keys.command("revoke")
def revoke_key(key_id: str, config: ConfigFile = None) -> None:
    """End a key; running dispatchers refuse it within a second."""
    from dispatcher.cli.admin import revoke

    execute(revoke(config, key_id))


@grants.command("set")
def set_grants(
    caller: str,
    capabilities: Annotated[list[str] | None, typer.Argument(help="All capabilities it may use.")] = None,
    config: ConfigFile = None,
) -> None:
    """Replace a caller's grants by exactly these; none takes all away."""
    from dispatcher.cli.admin import grant

    execute(grant(config, caller, capabilities or []))


@grants.command("show")
def show_grants(caller: str, config: ConfigFile = None) -> None:
    """Show what a caller may use."""
    from dispatcher.cli.admin import show

    execute(show(config, caller))


@dead.command("list")
def list_dead(
    cause: Annotated[
        str | None, typer.Option(help="poison, exhausted, expired, unauthorised or agent_error")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only of this agent.")] = None,
    capability: Annotated[str | None, typer.Option(help="Only of this capability.")] = None,
    open_only: Annotated[bool, typer.Option("--open", help="Only what nobody retried.")] = False,
    url: Url = LOCAL,
    key: Key = "",
) -> None:
    """Show the newest 50 dead letters."""
    from dispatcher.cli.dead import chosen, show_all

    wanted = chosen(cause=cause, agent_id=agent, capability=capability, retried=not open_only)
    execute(show_all(url=url, key=key, **wanted))


@dead.command("show")
def show_dead(dead_id: str, url: Url = LOCAL, key: Key = "") -> None:
    """Show one dead letter with its attempts."""
    from dispatcher.cli.dead import show_one

    execute(show_one(dead_id, url=url, key=key))


@dead.command("retry")
def retry_dead(dead_id: str, url: Url = LOCAL, key: Key = "") -> None:
    """Have a dead task done again, under its old idempotency key."""
    from dispatcher.cli.dead import do_again

    execute(do_again(dead_id, to=None, url=url, key=key))


@dead.command("route")
def route_dead(
    dead_id: str,
    to: Annotated[str, typer.Option(help="The agent that gets it.")],
    url: Url = LOCAL,
    key: Key = "",
) -> None:
    """Have a dead task done again by an agent of your choice."""
    from dispatcher.cli.dead import do_again

    execute(do_again(dead_id, to=to, url=url, key=key))


@handoff.command("list")
def list_handoffs(
    answered: Annotated[
        bool, typer.Option("--answered", help="What people answered, the latest first.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=499, help="How many at most.")] = 50,
    after: Annotated[str | None, typer.Option(help="Show those behind the one with this id.")] = None,
    url: Url = LOCAL,
    key: Key = "",
) -> None:
    """Show parts that wait for a person, the oldest first."""
    from dispatcher.cli.handoffs import show_handoffs

    execute(show_handoffs(answered=answered, limit=limit, after=after, url=url, key=key))


@handoff.command("answer")
def answer_handoff(
    task_id: str,
    answer: Annotated[str, typer.Argument(help="What the caller is told.")],
    url: Url = LOCAL,
    key: Key = "",
) -> None:
    """Answer a part in an agent's place; a part is answered once."""
    from dispatcher.cli.handoffs import give_answer

    execute(give_answer(task_id, answer, url=url, key=key))
