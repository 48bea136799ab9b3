"""Reads counters of a node and its processes from /proc: interfaces, fragments, memory, context switches."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from tunnelmark.lab.link_spec import ETHERNET
from tunnelmark.model.metrics import Sample
from tunnelmark.run import inner_network
from tunnelmark.run.collectors.base import Collected, CollectorContext

_ARPHRD_ETHER = "1"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class TrafficCounts:
    """A node's IP packets and bytes, no Ethernet headers: on the overlay (`inner`), and on the underlay (`wire`).

    `inner` packets are super-packets if the VPN's interface takes such. `created`: fragments that the node made;
    `reassembled`: packets that it put together from fragments. The kernel counts both for all interfaces together.
    """

    inner_bytes: int
    inner_sent_bytes: int  # the part of `inner_bytes` that was sent
    inner_sent_packets: int
    wire_bytes: int
    wire_packets: int
    sent_bytes: int  # the part of `wire_bytes` that was sent
    sent_packets: int
    created: int
    reassembled: int
    overlay: int = 0
    """The index of the overlay's interface; 0 if it is missing. As a difference, not 0 if it was created again."""

    def since(self, before: TrafficCounts) -> TrafficCounts:
        """Return the differences of all counters to an earlier look."""
        return TrafficCounts(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(self)))


CREATED_AGAIN = "the VPN's interface was created again during the traffic, and counts from zero since"
NOTHING_PASSED = "no packet passed the underlay"

PACKETS = "packets_"
"""The prefix of keys of `Collected.sums` that hold an end's wire packets, sent and received."""


def wire_packets(card: str, passed: Mapping[str, TrafficCounts]) -> dict[str, float]:
    """Return how many wire packets each end sent and received, as values of `Collected.sums`, added up over all hosts.

    The keys are `packets_source` and `packets_target`. `card`: that of the profile, `offloads` or `none`. `passed`: by
    end (`source`, `target`), what passed during the traffic; an end on another host is missing. With `offloads`, an
    end's interface counts a sent super-packet as one packet. So the packets that an end sent are counted where they
    arrive, at the other end: each key gets the packets that arrived at all ends of this host.
    """
    if card == "none":
        return {f"{PACKETS}{end}": counts.wire_packets for end, counts in passed.items()}
    arrived = sum(counts.wire_packets - counts.sent_packets for counts in passed.values())
    return {f"{PACKETS}{end}": arrived for end in ("source", "target")}


def for_each_packet(seen: Collected, done: str, metric: str) -> Collected:
    """Return, for each end, one of its sums divided by the number of its wire packets, as a sample of `metric`.

    `done`: the prefix of the sum's key in `Collected.sums`; the end follows. If no packet passed, there is a note
    instead. An end without that sum has neither sample nor note.
    """
    samples, notes = list[Sample](), dict[str, str]()
    for end in ("source", "target"):
        if f"{done}{end}" not in seen.sums:
            continue
        if packets := seen.sums.get(f"{PACKETS}{end}", 0.0):
            samples.append(Sample(f"{metric}_{end}", seen.sums[f"{done}{end}"] / packets))
        else:
            notes[f"{metric}_{end}"] = NOTHING_PASSED
    return Collected(tuple(samples), notes)


def traffic(context: CollectorContext, node: str) -> TrafficCounts:
    """Return what a node has sent and received up to now; OSError if the node is gone."""
    interfaces = interface_counts(context.proc(node, "net/dev"))
    overlay, inner = context.nodes[node].interface, (0, 0, 0, 0)
    with contextlib.suppress(FileNotFoundError):  # its daemon is being restarted
        inner = _ip(interfaces.get(overlay, inner), headers(context, node, overlay))
    underlay = context.nodes[node].headers
    wires = [_ip(counts, underlay[name]) for name, counts in interfaces.items() if name in underlay]
    wire = [sum(column) for column in zip(*wires, strict=True)]
    snmp, snmp6 = context.proc(node, "net/snmp"), ""
    with contextlib.suppress(FileNotFoundError):  # there is no IPv6
        snmp6 = context.proc(node, "net/snmp6")
    created, reassembled = fragments(snmp, snmp6)
    return TrafficCounts(
        inner_bytes=inner[0] + inner[2],
        inner_sent_bytes=inner[2],
        inner_sent_packets=inner[3],
        wire_bytes=wire[0] + wire[2],
        wire_packets=wire[1] + wire[3],
        sent_bytes=wire[2],
        sent_packets=wire[3],
        created=created,
        reassembled=reassembled,
        overlay=interface_index(context, node, overlay),
    )


def headers(context: CollectorContext, node: str, interface: str) -> tuple[int, int]:
    """Return how many bytes of Ethernet header an interface counts for each received packet, and for each sent packet.

    TAP devices count the headers, TUN devices have none, and VXLAN and Geneve do not count them (vxlan_rcv(),
    geneve_rx(), iptunnel_xmit()).
    """
    if (found := context.nodes[node].headers.get(interface)) is not None:
        return found
    if interface in inner_network.INTERFACES.values():
        return 0, 0
    return (ETHERNET, ETHERNET) if _interface_file(context, node, interface, "type") == _ARPHRD_ETHER else (0, 0)


def interface_index(context: CollectorContext, node: str, interface: str) -> int:
    """Return the kernel's index of a node's interface, which one that is created again does not have; 0 if it is missing."""
    try:
        return int(_interface_file(context, node, interface, "ifindex"))
    except FileNotFoundError:
        return 0


def _interface_file(context: CollectorContext, node: str, interface: str, name: str) -> str:
    """Return the text of a file in /sys/class/net/INTERFACE of a node; FileNotFoundError without such an interface."""
    return Path(f"/proc/{context.nodes[node].agent}", "root/sys/class/net", interface, name).read_text().strip()


def interface_counts(text: str) -> dict[str, tuple[int, int, int, int]]:
    """Return by interface: received bytes, received packets, sent bytes, sent packets, from /proc/net/dev."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        numbers = [int(word) for word in rest.split()]
        found[name.strip()] = (numbers[0], numbers[1], numbers[8], numbers[9])
    return found


def ip_counts(text: str) -> dict[str, int]:
    """Return the counters of IPv4 by name, from /proc/net/snmp."""
    names, values = (line.split()[1:] for line in text.splitlines() if line.startswith("Ip:"))
    return {name: int(value) for name, value in zip(names, values, strict=True)}


def fragments(snmp: str, snmp6: str) -> tuple[int, int]:
    """Return how many IP fragments a node has made, and how many packets it has reassembled, of IPv4 and IPv6 together.

    `snmp`, `snmp6`: the texts of these files of /proc/net; `snmp6` is "" if there is no IPv6.
    """
    four = ip_counts(snmp)
    six = {name: int(value) for name, value in re.findall(r"^Ip6(\w+)\s+(\d+)$", snmp6, re.MULTILINE)}
    return four["FragCreates"] + six.get("FragCreates", 0), four["ReasmOKs"] + six.get("ReasmOKs", 0)


def _ip(counts: tuple[int, int, int, int], header: tuple[int, int]) -> tuple[int, int, int, int]:
    received, packets_in, sent, packets_out = counts
    return received - header[0] * packets_in, packets_in, sent - header[1] * packets_out, packets_out


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of some processes in bytes: PSS (shared pages divided among those that share them) and RSS."""

    pss: int
    rss: int


def memory(processes: Iterable[int], proc: Path = _PROC) -> Memory:
    """Return the memory of some processes now, by their numbers in this /proc; a process that has ended counts as 0.

    Raises PermissionError if their memory may not be read.
    """
    pss = rss = 0
    for process in processes:
        if (text := _of(proc / str(process) / "smaps_rollup")) is None:
            continue
        found = dict(re.findall(r"^(Pss|Rss):\s+(\d+) kB$", text, re.MULTILINE))
        pss += 1024 * int(found.get("Pss", 0))
        rss += 1024 * int(found.get("Rss", 0))
    return Memory(pss, rss)


@dataclass(frozen=True, slots=True)
class Switches:
    """How often threads gave up their core to wait (`voluntary`), and how often the kernel took it (`involuntary`)."""

    voluntary: int
    involuntary: int


def switches(processes: Iterable[int]) -> Switches:
    """Return the context switches of all threads of some processes up to now; those of ended threads are missing."""
    totals = {"voluntary": 0, "nonvoluntary": 0}
    for process in processes:
        try:
            threads = list(Path(f"/proc/{process}/task").iterdir())
        except OSError:
            continue
        for thread in threads:
            try:
                text = (thread / "status").read_text()
            except OSError:
                continue
            for kind, count in re.findall(r"^(voluntary|nonvoluntary)_ctxt_switches:\s+(\d+)$", text, re.MULTILINE):
                totals[kind] += int(count)
    return Switches(totals["voluntary"], totals["nonvoluntary"])


def _of(file: Path) -> str | None:
    """Return the text of a file of a process; None if the process has ended."""
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
