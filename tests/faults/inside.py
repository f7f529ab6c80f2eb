"""Agents for a gateway's own process: `--agent tests.faults.inside:ada`; they write in its working folder."""

from pathlib import Path

from tests.faults.echo import echo_agent

ada = echo_agent("ada", Path("ada.jsonl"))
slow = echo_agent("ada", Path("ada.jsonl"), max_load=4)
"""The same agent with half the room."""
