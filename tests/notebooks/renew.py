"""`python -m tests.notebooks.renew`: makes the sample decisions and all committed outputs anew.

Takes about a minute. Do it where routing or a notebook has changed, and read what is different then.
"""

import subprocess
import sys
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def renew() -> None:
    """Raises CalledProcessError where something can't be made; decisions are replaced only by whole ones."""
    data = NOTEBOOKS / "data"
    made = subprocess.run(
        (sys.executable, "-m", "dispatcher.tuning.analysis.sample_week", str(data / "shopdesk")),
        check=True,
        stdout=subprocess.PIPE,
    )
    (data / "decisions.jsonl").write_bytes(made.stdout)
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        command = ("-m", "tests.notebooks.execute", str(notebook), str(notebook), str(NOTEBOOKS))
        subprocess.run((sys.executable, "-W", "ignore", *command), check=True)


if __name__ == "__main__":
    renew()
