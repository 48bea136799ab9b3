"""Makes a lab's links: the middle node's ports, with a shaper for each direction, and the nodes' interfaces.

Rate and queue are shaped on the middle node's ports and never on an end host, and they are those of wire packets. With
`card` (a profile's `card = "offloads"`) the end hosts hand over super-packets, as hosts do to a card with TSO and USO.
The token bucket or the port splits super-packets into wire packets. A port has no TSO, so the kernel merges packets
again when they arrive at an end host's interface (GRO, `veth_skb_is_eligible_for_gro`). So a link splits and merges
where a card would. Without `card`, the end hosts' kernels split super-packets before they leave, and nothing is merged.

A packet that enters a port is copied (tc's mirred) to the port of its destination, and the original is dropped. A
bridge would hand the original on, which still belongs to the socket that sent it: the sender would feel the middle
node's queue as if it were its own (TCP small queues, socket send buffers) and would wait where on a real path packets
are lost.
"""

from __future__ import annotations

import errno
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address

from pyroute2 import Ethtool, IPRoute
from pyroute2.netlink.rtnl.ifaddrmsg import IFA_F_NODAD

from tunnelmark.lab.link_spec import LinkSpec, Shaper, interface_of, six
from tunnelmark.linux import syscalls

OFFLOADS: Mapping[str, bool] = {
    "tx-tcp-segmentation": False,
    "tx-tcp-ecn-segmentation": False,
    "tx-tcp-mangleid-segmentation": False,
    "tx-tcp6-segmentation": False,
    "tx-tcp-accecn-segmentation": False,
    "tx-udp-segmentation": False,
    "rx-gro": True,
}
"""Offload features of the end hosts' interfaces by the kernel's names (netdev_features_strings): whether each is on if
the hosts hand over only wire packets. For super-packets they are on, with the exceptions in `offloads`.
"""

CHECKSUMS = ("tx-checksum-ip-generic", "tx-checksum-sctp")
"""Offload features by which a node leaves checksums to its interface. XDP hands frames on as they are, so their
checksums must be right by then."""

ENCAPSULATED = (
    *("tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation"),
    *("tx-gre-segmentation", "tx-gre-csum-segmentation", "tx-ipxip4-segmentation", "tx-ipxip6-segmentation"),
)
"""Offload features by which a node leaves super-packets inside a tunnel of its kernel (a VXLAN) to its interface.

The emulator could not send these on: the header of a packet socket describes them as TCP, without the tunnel's headers
(virtio_net_hdr_from_skb(), virtio_net_hdr_to_skb())."""

_USO = (6, 2)
"""The first kernel that can hand a super-packet of UDP to the emulator. Before, recvmsg(2) refuses it with EINVAL,
because the header of a packet socket cannot describe it (`virtio_net_hdr_from_skb`)."""


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """A node: its name, the PID of its agent, and the cores that do its receiving (if empty, the sender's core does).

    A router does not merge packets that arrive: it forwards packet by packet, as a hardware router does.
    """

    name: str
    pid: int
    cores: tuple[int, ...]
    router: bool = False


def build(middle: LinkEnd | None, hosts: Sequence[LinkEnd], links: Sequence[LinkSpec]) -> None:
    """Join end hosts by links that run through the middle node. OSError or NetlinkError if the kernel refuses a part.

    `middle` is None if the middle node is on another machine, and `hosts` are only those here. Interfaces that lead to
    another machine exist already, under the names that `LinkSpec.ports` and `interface_of` give them.
    """
    pids = {host.name: host.pid for host in hosts}
    if middle is not None:
        with inside(middle.pid) as route:
            for number, spec in enumerate(links):
                _make_ports(route, middle, pids, links, number)
                if spec.emulated and spec.shapers:
                    _shape_behind(route, spec, number)
    for host in hosts:
        with inside(host.pid) as route:
            route.link("set", index=_index(route, "lo"), state="up")
            for number, spec in enumerate(links):
                if host.name in spec.addresses:
                    _connect(route, host, _Joint(interface_of(host.name, links, number), spec, number))


def _make_ports(
    route: IPRoute, middle: LinkEnd, pids: Mapping[str, int], links: Sequence[LinkSpec], number: int
) -> None:
    """Make the middle node's ports of one link. They are joined by copying unless the emulator carries the packets."""
    spec = links[number]
    ports, macs = spec.ports(number), spec.macs(number)
    for place, name in enumerate(spec.addresses):
        if name in pids:
            interface = interface_of(name, links, number)
            peer = {"ifname": interface, "net_ns_pid": pids[name], "address": macs[name], "mtu": spec.mtu}
            index = _INDEX + 1000 * number + place
            route.link("add", ifname=ports[name], kind="veth", mtu=spec.mtu, index=index, peer=peer)
        _receive_on(ports[name], middle)
        if spec.card:
            _set_offloads(ports[name], {**OFFLOADS, "rx-gro": False})
    _tc([line for name in ports for line in queues(name, ports[name], spec)])
    for name in ports:
        route.link("set", index=_index(route, ports[name]), state="up")
    if not spec.emulated:
        _tc([line for name in ports for line in _copying(name, ports, macs)])


def _shape_behind(route: IPRoute, spec: LinkSpec, number: int) -> None:
    """Let the packets that the emulator sends pass the ports' shapers: by itself it sends past queue disciplines.

    There is a veth pair between each port and the emulator. Packets are copied between the pair and the port.
    """
    for name, port in spec.ports(number).items():
        door, inner = spec.doors(number)[name], f"{name[:9]}.{number}m"
        route.link("add", ifname=door, kind="veth", mtu=spec.mtu, peer={"ifname": inner, "mtu": spec.mtu})
        for interface in (door, inner):
            route.link("set", index=_index(route, interface), state="up")
        _tc(
            [
                line
                for here, there in ((port, inner), (inner, port))
                for line in _copying(here, {here: here, there: there}, {})
            ]
        )


@dataclass(frozen=True, slots=True)
class _Joint:
    """An end host's interface on a link."""

    interface: str
    spec: LinkSpec
    number: int


def _connect(route: IPRoute, host: LinkEnd, joint: _Joint) -> None:
    """Give an end host's interface its settings and its address, inside the host's network."""
    spec = joint.spec
    _set_offloads(joint.interface, offloads(spec, platform.release()) | ({"rx-gro": False} if host.router else {}))
    _receive_on(joint.interface, host)
    index = _index(route, joint.interface)
    ip, _, prefix = spec.addresses[host.name].partition("/")
    route.addr("add", index=index, address=ip, prefixlen=int(prefix))
    route.link("set", index=index, state="up")
    if spec.ipv6:
        # Even with accept_dad=0 an address is tentative until a kernel worker has run, and a bind() to it is refused; not with "nodad".
        route.addr("add", index=index, address=str(six(IPv4Address(ip))), prefixlen=64, flags=IFA_F_NODAD)
    if spec.netem_on_sender and host.name in spec.netem:
        _tc(sender_queues(joint.interface, spec, spec.netem[host.name]))
    if spec.emulated or spec.netem:
        # A lost ARP request costs a second. No path of routers has that, and the link represents the whole path.
        for name, mac in spec.macs(joint.number).items():
            if name != host.name:
                address = spec.address(name)
                for known in (address, six(address)) if spec.ipv6 else (address,):
                    route.neigh("add", dst=str(known), lladdr=mac, ifindex=index, state="permanent")


def queues(name: str, port: str, spec: LinkSpec) -> list[str]:
    """Return the tc commands that put netem, behind it the propagation and behind that the shaper on the middle node's
    port to a node, as far as the link has them.

    They are for tc because pyroute2 does not know the overhead of a token bucket.
    """
    netems = [spec.netem[name]] if spec.netem_here(name) else []
    netems += [spec.propagation[name]] if name in spec.propagation else []
    disciplines = [" ".join(["netem", *arguments]) for arguments in netems]
    if (shaper := spec.shapers.get(name)) is not None:
        disciplines.append(shaper.words)
    lines, place = [], "root"
    for number, discipline in enumerate(disciplines, start=1):
        lines.append(f"qdisc add dev {port} {place} handle {number}: {discipline}")
        place = f"parent {number}:1"
    return lines


def sender_queues(interface: str, spec: LinkSpec, netem: Sequence[str]) -> list[str]:
    """Return the tc commands that put netem on an end host's own interface; `netem`: its arguments.

    A host splits super-packets behind its queues, whatever its interface can do, so netem counts one for what TCP, a VPN's
    UDP_SEGMENT or a VXLAN has handed over at once. Where it is to count wire packets, a token bucket that holds nothing
    up splits them in front of it.
    """
    if spec.super_packets:
        return [" ".join(["qdisc add dev", interface, "root netem", *netem])]
    splitter = Shaper(rate=100_000_000_000, queue=1, mtu=spec.mtu, splits=True)  # netem has the queue
    return [
        f"qdisc add dev {interface} root handle 1: {splitter.words}",
        " ".join(["qdisc add dev", interface, "parent 1:1 netem", *netem]),
    ]


_INDEX = 10_000
"""The first interface number of ports, far from the numbers of nodes' interfaces.

The kernel does not recognise a veth whose number equals that of its peer in another network. It then notices up to a
second late that the peer is up, if another interface came up within the last second, and packets sent until then are
lost: read in net/core/link_watch.c (linkwatch_urgent_event()); 1 first ping of 275 was lost so in place of 7."""

_ACTIONS = 14  # actions of one filter: tc takes a hundred words in a line


def _tc(lines: Sequence[str]) -> None:
    """Carry out tc commands. OSError with tc's own words if it refuses one."""
    if not lines:
        return
    done = subprocess.run(["tc", "-batch", "-"], input="\n".join(lines).encode(), check=False, capture_output=True)
    if done.returncode != 0:
        raise OSError(f"tc refused: {done.stderr.decode(errors='replace').strip()}")


def _copying(source: str, ports: Mapping[str, str], macs: Mapping[str, str]) -> list[str]:
    """Return the tc commands that copy packets that enter the port of `source` to the port of their destination.

    They are for tc because pyroute2 cannot match in front of the network header, where the Ethernet destination is.
    """
    others = [name for name in ports if name != source]
    add = f"filter add dev {ports[source]} parent ffff: protocol all u32"

    def to(names: Sequence[str]) -> str:
        return " ".join(f"action mirred egress mirror dev {ports[name]}" for name in names)

    if len(others) == 1:
        rules = [f"{add} match u32 0 0 {to(others)}"]
    else:
        # Broadcast and multicast: a filter has 32 actions at most (TCA_ACT_MAX_PRIO), so one hands on to the next.
        parts = [others[begin : begin + _ACTIONS] for begin in range(0, len(others), _ACTIONS)]
        rules = [f"{add} match u8 0x01 0x01 at -14 {to(part)}" for part in parts]
        rules = rules if len(rules) == 1 else [f"{rule} continue" for rule in rules]
        for name in others:
            mac = macs[name].replace(":", "")
            rules.append(
                f"{add} match u16 0x{mac[:4]} 0xffff at -14 match u32 0x{mac[4:]} 0xffffffff at -12 {to([name])}"
            )
    return [f"qdisc add dev {ports[source]} ingress", *rules]


def _receive_on(interface: str, host: LinkEnd) -> None:
    """Have the node's own cores do the work of receiving (RPS); else the sender's core would."""
    if host.cores:
        mask = sum(1 << core for core in host.cores)
        words = [f"{mask >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(mask.bit_length(), 1), 32)]
        # Through /proc: the agent has mounted its own /sys, which shows its own interfaces.
        queues = f"/sys/class/net/{interface}/queues/rx-0"
        place = f"/proc/{host.pid}/root{queues}/rps_cpus"
        with open(place, "w") as file:
            file.write(",".join(reversed(words)))


def offloads(spec: LinkSpec, release: str) -> dict[str, bool]:
    """Return whether each offload feature of the end hosts' interfaces is to be on, under a kernel of this release."""
    wanted = {name: on or spec.super_packets for name, on in OFFLOADS.items()}
    if spec.emulated and tuple(map(int, re.findall(r"\d+", release)[:2])) < _USO:
        wanted["tx-udp-segmentation"] = False
    if spec.emulated:
        wanted |= dict.fromkeys(ENCAPSULATED, False)
    return wanted | dict.fromkeys(CHECKSUMS, spec.super_packets or not spec.emulated)


def _set_offloads(interface: str, wanted: Mapping[str, bool]) -> None:
    with Ethtool() as ethtool:
        features = ethtool.get_features(interface)
        for name, on in wanted.items():
            if (feature := features.features.get(name)) is None or feature.enable == on:
                continue
            if feature.available:
                feature.enable = on
            elif not on:  # a feature that a VXLAN lacks is not needed; one that cannot be turned off changes the link
                raise OSError(errno.EOPNOTSUPP, f"{interface} cannot turn {name} off")
        ethtool.set_features(interface, features)


def _index(route: IPRoute, name: str) -> int:
    found: list[int] = route.link_lookup(ifname=name)
    return found[0]


@contextmanager
def inside(pid: int) -> Iterator[IPRoute]:
    """Move the calling thread into another process's network namespace for the body of the `with` statement.

    Yield a netlink socket in that namespace. At the end, close the socket, and move the thread back to its own.
    """
    with open("/proc/self/ns/net") as back:
        syscalls.enter(pid, "net")
        try:
            with IPRoute() as route:
                yield route
        finally:
            syscalls.reenter(back.fileno())
