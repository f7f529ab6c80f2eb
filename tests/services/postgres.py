"""A private PostgreSQL server on loopback.

PostgreSQL refuses to run as root, so root runs it as the account `postgres`.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.services.environment import variables
from tests.services.ports import LOOPBACK, free_ports
from tests.services.process import Program, ServiceProcess

INSTALL = "apt-get install postgresql"
_PACKAGES = Path("/usr/lib/postgresql")
_ACCOUNT = "postgres"
_START_S = 60.0
_STOP_S = 20.0


def find_programs() -> Path | None:
    """The folder with `initdb` and `postgres`, or None where the server is not installed."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    versions = [folder for folder in _PACKAGES.glob("*/bin") if (folder / "initdb").exists()]
    return max(versions, key=lambda folder: float(folder.parent.name), default=None)


def missing() -> str | None:
    """What has to be installed before a server can start, or None."""
    return None if find_programs() else f"PostgreSQL is not installed: {INSTALL}"


class PostgresServer:
    """One server whose data live in `folder` and survive `kill` and `stop`; fsync stays on."""

    def __init__(self, folder: Path) -> None:
        programs = find_programs()
        if programs is None:
            raise RuntimeError(missing())
        self._programs = programs
        self._folder = folder
        self._data = folder / "data"
        self._user = _ACCOUNT if os.geteuid() == 0 else None
        (self.port,) = free_ports(1)
        self._server = ServiceProcess(
            Program(
                command=(
                    str(programs / "postgres"),
                    *("-D", str(self._data), "-p", str(self.port)),
                    *("-c", f"listen_addresses={LOOPBACK}", "-c", f"unix_socket_directories={folder}"),
                    *("-c", "max_connections=200"),
                ),
                folder=folder,
                variables=variables(),
                log=folder / "out.log",
                user=self._user,
            )
        )

    @property
    def url(self) -> str:
        """The superuser's connection URL; loopback connections are trusted."""
        return f"postgresql://postgres@{LOOPBACK}:{self.port}/postgres"

    def start(self) -> None:
        """Return when the server takes connections; the first start creates the data folder."""
        if not self._data.exists():
            self._create_data()
        if not self._server.is_running:
            self._server.start(self._is_ready, _START_S)

    def stop(self) -> None:
        """Shut down cleanly, ending open connections; the data stay."""
        self._server.stop(signal.SIGINT, _STOP_S)

    def kill(self) -> None:
        """Crash the server and its children with SIGKILL; the data stay."""
        self._server.kill()

    def restart(self) -> None:
        """Shut down cleanly and start again."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop the server for good."""
        self.stop()

    def _create_data(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._user:
            shutil.chown(self._folder, self._user, self._user)
        command = (
            str(self._programs / "initdb"),
            *("-D", str(self._data), "-U", "postgres", "-A", "trust"),
            *("--encoding=UTF8", "--no-locale", "--no-sync"),
        )
        subprocess.run(
            command,
            cwd=self._folder,
            check=True,
            stdout=subprocess.DEVNULL,
            user=self._user,
            group=self._user,
            extra_groups=None if self._user is None else (),
        )

    def _is_ready(self) -> bool:
        command = (str(self._programs / "pg_isready"), "-q", "-h", LOOPBACK, "-p", str(self.port))
        return subprocess.run(command, check=False).returncode == 0
