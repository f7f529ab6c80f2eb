"""What processes of this machine have used, read from /proc (Linux)."""

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_LISTENING = "0A"
_PEAK = "VmHWM:"
_BUSY = (1, 2, 3, 6, 7, 8)
"""Places in the first line of /proc/stat: all but idle and waiting for a disk."""
_PARENT, _FIRST_TIME, _LAST_TIME = 1, 11, 15
"""Places in /proc/PID/stat after the name: own user and system time, then those of ended children."""


def cpu_ms(pid: int) -> float:
    """CPU time of a process and all its descendants so far; 0 when it is gone."""
    children = _children()
    waiting, ticks = [pid], 0
    while waiting:
        one = waiting.pop()
        ticks += sum(int(field) for field in _stat(one)[_FIRST_TIME:_LAST_TIME])
        waiting += children[one]
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def machine_busy_ms() -> float:
    """CPU time that everything on this machine has used since its start, including what was stolen."""
    fields = (_PROC / "stat").read_text(encoding="ascii").partition("\n")[0].split()
    return sum(int(fields[place]) for place in _BUSY) * 1000 / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB of 2^20 bytes; 0 when it is gone."""
    with suppress(OSError):
        pages = int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
    return 0.0


def peak_mb(pid: int) -> float:
    """The most resident memory that a process ever had, in MB of 2^20 bytes; 0 when it is gone."""
    with suppress(OSError):
        for line in (_PROC / str(pid) / "status").read_text(encoding="utf-8").splitlines():
            if line.startswith(_PEAK):
                return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def listener(port: int) -> int | None:
    """The process that listens on a TCP port of this machine; None where we may not see it."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    found = [pid for pid in _pids() if sockets & _descriptors(pid)]
    return min(found, default=None)


def _pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.glob("[0-9]*")]


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = defaultdict(list)
    for pid in _pids():
        fields = _stat(pid)
        if fields:
            children[int(fields[_PARENT])].append(pid)
    return children


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold anything but ends at the last bracket."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _inodes(port: int) -> set[str]:
    found = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found


def _descriptors(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for descriptor in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                found.add(str(descriptor.readlink()))
    return found
