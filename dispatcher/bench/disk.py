"""How long the disk takes to keep a kilobyte: what every durable step waits for."""

import os
import tempfile
import time
from statistics import median

WRITES = 30
_BLOCK = b"x" * 1024


def fsync_ms() -> float:
    """The median of a few writes to the folder for temporary files, in ms."""
    taken = []
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(WRITES):
            file.write(_BLOCK)
            started = time.perf_counter()
            os.fsync(file.fileno())
            taken.append((time.perf_counter() - started) * 1000)
    return median(taken)
