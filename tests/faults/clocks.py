"""Clocks that jump: row 35 of the matrix."""

from collections.abc import Mapping
from pathlib import Path

from tests.faults.row import Row
from tests.faults.trial import Trial

HOUR_S = 3600
FAKETIME = "faketime/libfaketimeMT.so.1"
INSTALL = "apt-get install faketime"


class FakeClock:
    """The wall clock of processes that run with `variables`; their monotonic clock is the real one."""

    def __init__(self, file: Path) -> None:
        library = next(Path("/usr/lib").glob(f"*/{FAKETIME}"), None)
        assert library, f"libfaketime is not installed: {INSTALL}"
        self._file = file
        self.jump(0)
        self.variables: Mapping[str, str] = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, seconds: int) -> None:
        """Set it so far from the real one."""
        self._file.write_text(f"{seconds:+d}")


async def clocks_jump(trial: Trial) -> None:
    """Row 35: a gateway's and an agent's clock jump by an hour: nobody is evicted, nothing is late."""
    fleet, clock = trial.fleet, FakeClock(trial.fleet.folder / "offset")
    fleet.kill_gateway(0)
    fleet.kill_agent("ada")
    await fleet.start_gateway(0, **clock.variables)
    await fleet.start_agent("ada", **clock.variables)
    async with trial.load.flowing():
        for seconds in (HOUR_S, -HOUR_S, 0):
            before = len(fleet.starts("ada"))
            clock.jump(seconds)
            await trial.clock.sleep(4)
            assert len(fleet.starts("ada")) > before, f"ada got nothing after a jump to {seconds:+d} s"
        trial.heal()
    for order in trial.load.orders:
        assert (await trial.load.ended(order))["status"] == "completed"


ROWS = (Row(numbers="35", title="clocks jump", fault=clocks_jump),)
