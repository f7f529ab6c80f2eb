"""`python -m tests.notebooks.execute SOURCE TARGET FOLDER`: runs a notebook in a clean kernel, from a folder.

To renew the outputs that are committed, name the notebook as SOURCE and as TARGET.
"""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

TIMEOUT_S = 120
_KERNEL = Config(KernelManager={"transport_encryption": "auto"})
_LANGUAGE = {"name": "python"}


def execute(source: Path, target: Path, folder: Path) -> None:
    """Write the executed notebook to `target`, without times and versions, which differ from run to run.

    Raises nbclient's CellExecutionError when a cell fails, CellTimeoutError when one takes over 120 s.
    """
    notebook: Any = nbformat.read(source, as_version=4)
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=TIMEOUT_S, record_timing=False, resources=where, config=_KERNEL)
    client.execute()
    notebook.metadata["language_info"] = _LANGUAGE
    nbformat.write(notebook, target)


if __name__ == "__main__":
    execute(*(Path(argument) for argument in sys.argv[1:4]))
