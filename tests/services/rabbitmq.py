"""A private RabbitMQ node on loopback, with its own Erlang port mapper.

The package's command on the PATH changes user and drops options, so the real script in the
library folder is run. With RUNNING_UNDER_SYSTEMD it replaces itself by the Erlang VM: the
process started here is the node, TERM is a clean stop and KILL a real crash.
"""

import secrets
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from tests.services.environment import RABBITMQ_HOME, variable, variables
from tests.services.ports import LOOPBACK, free_ports
from tests.services.process import Program, ServiceProcess

INSTALL = "apt-get install --no-install-recommends rabbitmq-server"
_LIBRARY = Path("/usr/lib/rabbitmq")
_START_S = 90.0
_STOP_S = 20.0
_PROBE_S = 2.0
_CONFIGURATION = """\
listeners.tcp.1 = {host}:{port}
vm_memory_high_watermark.absolute = 2GB
disk_free_limit.absolute = 200MB
log.console = false
"""


def find_server() -> Path | None:
    """The real server script, or None where RabbitMQ is not installed."""
    library = Path(variable(RABBITMQ_HOME) or _LIBRARY)
    scripts = (library / folder / "rabbitmq-server" for folder in ("bin", "sbin"))
    return next((script for script in scripts if script.exists()), None)


def missing() -> str | None:
    """What has to be installed before a node can start, or None."""
    if find_server() and shutil.which("epmd"):
        return None
    return f"RabbitMQ is not installed: {INSTALL} (or set {RABBITMQ_HOME} to its library folder)"


class RabbitNode:
    """One node whose data, cookie and logs live in `folder` and survive `kill` and `stop`."""

    def __init__(self, folder: Path) -> None:
        server, mapper = find_server(), shutil.which("epmd")
        if server is None or mapper is None:
            raise RuntimeError(missing())
        self._folder = folder
        self._server = server
        self.port, self._distribution_port, self._mapper_port = free_ports(3)
        self._name = f"test{self.port}@localhost"
        self._write_files()
        self._variables = self._environment()
        log = folder / "out.log"
        self._mapper = ServiceProcess(
            Program(
                command=(mapper, "-port", str(self._mapper_port), "-address", LOOPBACK),
                folder=folder,
                variables=self._variables,
                log=folder / "epmd.log",
            )
        )
        self._node = ServiceProcess(
            Program(command=(str(server),), folder=folder, variables=self._variables, log=log)
        )

    @property
    def url(self) -> str:
        """Where clients connect; the account is the broker's own `guest`."""
        return f"amqp://guest:guest@{LOOPBACK}:{self.port}/"

    def start(self) -> None:
        """Return when the node answers AMQP clients; starts again with the same data and port."""
        if not self._mapper.is_running:
            self._mapper.start(lambda: _accepts(self._mapper_port), _START_S)
        if not self._node.is_running:
            self._node.start(lambda: _speaks_amqp(self.port), _START_S)

    def stop(self) -> None:
        """Shut the node down cleanly; the data stay."""
        self._node.stop(signal.SIGTERM, _STOP_S)

    def kill(self) -> None:
        """Crash the node with SIGKILL; the data stay."""
        self._node.kill()

    def restart(self) -> None:
        """Shut down cleanly and start again."""
        self.stop()
        self.start()

    def control(self, *arguments: str) -> str:
        """Run `rabbitmqctl` against the node and return what it prints."""
        command = (str(self._server.with_name("rabbitmqctl")), "-n", self._name, *arguments)
        return subprocess.run(
            command, cwd=self._folder, env=self._variables, check=True, capture_output=True, text=True
        ).stdout

    def close(self) -> None:
        """Stop the node and its port mapper for good."""
        self.stop()
        self._mapper.kill()

    def _write_files(self) -> None:
        for name in ("mnesia", "log", "schema"):
            (self._folder / name).mkdir(parents=True)
        cookie = self._folder / ".erlang.cookie"
        cookie.write_text(secrets.token_hex(16))
        cookie.chmod(0o400)
        (self._folder / "environment.conf").write_text("")
        (self._folder / "enabled_plugins").write_text("[].\n")
        (self._folder / "rabbitmq.conf").write_text(_CONFIGURATION.format(host=LOOPBACK, port=self.port))

    def _environment(self) -> dict[str, str]:
        folder = self._folder
        return {
            **{name: value for name, value in variables().items() if not name.startswith("RABBITMQ_")},
            "HOME": str(folder),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "environment.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_NODENAME": self._name,
            "RABBITMQ_NODE_IP_ADDRESS": LOOPBACK,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_SCHEMA_DIR": str(folder / "schema"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "schema"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RUNNING_UNDER_SYSTEMD": "true",
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": LOOPBACK,
        }


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), _PROBE_S):
            return True
    except OSError:
        return False


def _speaks_amqp(port: int) -> bool:
    """A node that is still booting refuses, or answers with a header instead of Connection.Start."""
    try:
        with socket.create_connection((LOOPBACK, port), _PROBE_S) as probe:
            probe.settimeout(_PROBE_S)
            probe.sendall(b"AMQP\x00\x00\x09\x01")
            return probe.recv(3) == b"\x01\x00\x00"
    except OSError:
        return False
