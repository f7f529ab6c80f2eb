"""How commands print: nothing is cut, and nothing that was stored or asked is taken for markup."""

import sys

from rich.console import Console
from rich.table import Table

_PIPED_WIDTH = 100_000
"""A row of a table stays one line for whoever reads it: `grep` does not know where 80 columns end."""


def terminal() -> Console:
    """Standard output, as wide as the terminal; without one as wide as what is printed."""
    console = Console(soft_wrap=True, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _PIPED_WIDTH
    return console


def folding_table(*names: str) -> Table:
    """A table that breaks long cells over lines instead of cutting them."""
    table = Table()
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def warn(text: str) -> None:
    """One line on standard error; the command goes on."""
    sys.stderr.write(f"warning: {text}\n")
