"""What a running process holds in memory, as the kernel counts it."""

from pathlib import Path


def resident_mb(pid: int) -> float:
    """The memory that the process has now, in megabytes."""
    return _line(pid, "VmRSS")


def peak_mb(pid: int) -> float:
    """The most that it ever had, in megabytes."""
    return _line(pid, "VmHWM")


def _line(pid: int, name: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(line.split()[1] for line in status.split("\n") if line.startswith(f"{name}:"))
    return int(kilobytes) / 1024
