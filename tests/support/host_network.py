"""Hosts on a switch, each with an OpenSSH server of its own: what an inventory names, as namespaces of this machine."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from support.command import environment
from support.sshd import SshHost
from tunnelmark.lab.ssh.inventory import Inventory, read

COMMAND = shlex.join(
    [
        "env",
        f"HOME={Path.home()}",
        f"PYTHONPATH={environment()['PYTHONPATH']}",
        f"PATH={os.environ['PATH']}",
        sys.executable,
        "-c",
        "from tunnelmark.cli import main; raise SystemExit(main())",
    ]
)
MTU = 9000


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """Hosts that reach each other by `eth0`, and the file that names them."""

    hosts: Sequence[SshHost]
    file: Path

    @property
    def inventory(self) -> Inventory:
        """What the file says."""
        return read(self.file)


@contextmanager
def host_network(
    folder: Path,
    roles: Sequence[Sequence[str]],
    *,
    mtu: int = MTU,
    network: str = "",
    command: str = COMMAND,
    far: float = 0.0,
    nodes: int = 1,
) -> Iterator[HostNetwork]:
    """A host for each of the `roles`, called h1, h2, ... with the addresses 192.0.2.1, 192.0.2.2, ... (RFC 5737).

    They were started a day apart, by their clocks. They are `far` seconds from the command, each way. Each may have so many `nodes`.
    """
    with ExitStack() as stack:
        hosts = [
            stack.enter_context(SshHost(folder / f"h{n}", f"h{n}", uptime=n * 86_400, far=far))
            for n in range(1, len(roles) + 1)
        ]
        switch = stack.enter_context(SshHost(folder / "switch", "switch"))
        switch.run("ip", "link", "add", "br0", "mtu", str(mtu), "type", "bridge")
        switch.run("ip", "link", "set", "br0", "up")
        for n, host in enumerate(hosts, start=1):
            switch.run(*f"ip link add p{n} mtu {mtu} type veth peer name eth0 mtu {mtu} netns {host.pid}".split())
            switch.run(*f"ip link set p{n} master br0 up".split())
            host.run(*f"ip addr add 192.0.2.{n}/24 dev eth0".split())
            host.run("ip", "link", "set", "eth0", "up")
        file = folder / "hosts.toml"
        file.write_text(
            network
            + "".join(
                f'[[hosts]]\nname = "h{n}"\nssh = {_quoted(shlex.join(host.options))}\naddress = "192.0.2.{n}"\n'
                f'interface = "eth0"\nroles = {list(own)}\nnodes = {nodes}\ncommand = {_quoted(command)}\n\n'
                for n, (host, own) in enumerate(zip(hosts, roles, strict=True), start=1)
            )
        )
        yield HostNetwork(hosts, file)


def _quoted(words: str) -> str:
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'


def left(host: SshHost) -> list[str]:
    """Interfaces and processes on a host that were not there at its beginning."""
    links = [line.split(":")[1].strip() for line in host.run("ip", "-o", "link").splitlines()]
    found = [name for name in links if name.split("@")[0] not in ("lo", "eth0")]
    for process in host.processes():
        with suppress(OSError):
            found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
    return found


def rests(network: HostNetwork) -> list[str]:
    """What is left on the hosts, once they have had time to end it."""
    until = time.monotonic() + 20
    while (found := [each for host in network.hosts for each in left(host)]) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def is_root_with_server() -> bool:
    """Whether such hosts can be made here."""
    from support.sshd import SERVER

    return os.geteuid() == 0 and SERVER is not None
