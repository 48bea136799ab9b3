"""Describes the part of a lab that is on this host, for collectors that look into its nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunnelmark.host.lab_seconds import lab_seconds
from tunnelmark.host.pauses import PausesSeen
from tunnelmark.lab.link_spec import ETHERNET, LinkSpec, interface_of

_SEGMENTS = {"vxlan": (0, 0), "vlan": (0, ETHERNET)}
"""Header bytes that an interface between hosts counts in each packet: in a received one, and in a sent one
(vxlan_rcv(), vxlan_xmit_one(); vlan_do_receive(), vlan_dev_hard_start_xmit())."""


@dataclass(frozen=True, slots=True)
class HostLab:
    """The nodes of a lab that are on this host, routers and the middle node included, by the PIDs of their agents."""

    name: str
    agents: Mapping[str, int]
    links: Sequence[LinkSpec]
    top: Path | None
    """The relay's control group in the v2 hierarchy; None without cgroup v2."""
    scratch: Path
    """A folder that is removed when the relay ends, however it ends."""
    seen: Callable[[], Awaitable[PausesSeen | None]]
    """Returns the pauses of this host up to now; None if nothing watches for them."""

    def cpu_seconds(self) -> float | None:
        """Return the CPU seconds that these nodes have used (see `lab_seconds`); None without cgroup v2."""
        return None if self.top is None else lab_seconds(self.top, self.name, self.agents)

    def group(self, node: str) -> Path | None:
        """Return the folder of a node's control group; None without cgroup v2."""
        return None if self.top is None else self.top / f"{self.name}.{node}"

    def counted_headers(self, node: str) -> dict[str, tuple[int, int]]:
        """Return, by underlay interface of a node, the header bytes counted in each packet received, and in each sent.

        See `LinkSpec.counted_headers`. An interface to another host, a VXLAN or a VLAN, counts other bytes than a veth.
        """
        found = {}
        for place, spec in enumerate(self.links):
            if node in spec.addresses:
                interface = interface_of(node, self.links, place)
                found[interface] = _SEGMENTS.get(self._kind(node, interface), spec.counted_headers)
        return found

    def _kind(self, node: str, interface: str) -> str:
        """Return the kernel's name for the kind of an interface (DEVTYPE); "" for a veth."""
        text = Path(f"/proc/{self.agents[node]}", "root", "sys/class/net", interface, "uevent").read_text()
        return dict(line.split("=", 1) for line in text.splitlines()).get("DEVTYPE", "")


Collect = Callable[[Mapping[str, Any], HostLab], Awaitable[Mapping[str, Any]]]
"""Answers a request of a trial's collectors about this host's nodes. The relay sends `give up` when the lab ends."""
