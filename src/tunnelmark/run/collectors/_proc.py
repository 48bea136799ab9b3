"""Parses kernel counters of places where packets are lost or wait: interfaces, sockets, TCP. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Device:
    """An interface's counters up to now, from /proc/net/dev."""

    received_bytes: int = 0
    received_packets: int = 0
    received_dropped: int = 0
    sent_bytes: int = 0
    sent_packets: int = 0
    sent_dropped: int = 0


def devices(text: str) -> dict[str, Device]:
    """Return the interfaces of /proc/net/dev by name."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        words = [int(word) for word in rest.split()]
        found[name.strip()] = Device(words[0], words[1], words[3], words[8], words[9], words[11])
    return found


def udp_errors(text: str) -> tuple[int, int]:
    """Return how many datagrams found a full receive buffer, and how many found a full send buffer.

    `text`: that of /proc/net/snmp or snmp6.
    """
    found = dict(re.findall(r"^Udp6(\w+)\s+(\d+)$", text, re.MULTILINE))  # snmp6: a name and its value a line
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("Udp:")]
    found |= dict(zip(*lines, strict=True)) if len(lines) == 2 else {}  # snmp: a line of names, one of values
    return int(found.get("RcvbufErrors", 0)), int(found.get("SndbufErrors", 0))


def udp_drops(text: str) -> dict[str, int]:
    """Return how many datagrams each UDP socket has dropped, by the socket's inode, from /proc/net/udp or udp6."""
    rows = [line.split() for line in text.splitlines()[1:]]
    return {row[9]: int(row[12]) for row in rows if len(row) > 12}


def idle(text: str, tick: int) -> dict[int, tuple[float, float]]:
    """Return, for each core, the seconds in which it was idle (idle, iowait), and those the hypervisor took (steal).

    `text`: that of /proc/stat. `tick`: clock ticks per second (SC_CLK_TCK), in which the file counts.
    """
    found = {}
    for line in text.splitlines():
        if match := re.match(r"cpu(\d+) ", line):
            words = line.split()
            found[int(match[1])] = (int(words[4]) + int(words[5])) / tick, int(words[8]) / tick
    return found


def process_seconds(text: str, tick: int, *, children: bool = True) -> float:
    """Return CPU seconds of a process and, with `children`, of children it waited for, from /proc/PID/stat.

    `tick`: clock ticks per second (SC_CLK_TCK), in which the file counts. A program's name may hold blanks and
    brackets, so fields are counted from the last bracket (proc(5): 14 to 17).
    """
    return sum(int(word) for word in text.rpartition(")")[2].split()[11 : 15 if children else 13]) / tick


@dataclass(frozen=True, slots=True)
class Quota:
    """What a control group's CPU quota did so far.

    `held`: seconds for which it stopped the group, added up over cores. `periods`: the quota's periods in which the
    group ran; `used_up`: those in which it used up its quota.
    """

    held: float = 0.0
    periods: int = 0
    used_up: int = 0

    def ran_out(self, before: Quota) -> float:
        """Return the share (0 to 1) of the periods since `before` in which the quota was used up; 0 without a period.

        A caller may use it where `held` is too small: the kernel adds to `held` only when it lets the group run again.
        """
        periods = self.periods - before.periods
        return (self.used_up - before.used_up) / periods if periods else 0.0


def quota(text: str) -> Quota:
    """Read a control group's quota from the text of its `cpu.stat` (cgroup v1 or v2); absent lines count as 0."""
    found = {words[0]: int(words[1]) for line in text.splitlines() if len(words := line.split()) == 2}
    held = found.get("throttled_usec", 0) / 1e6 + found.get("throttled_time", 0) / 1e9
    return Quota(held, found.get("nr_periods", 0), found.get("nr_throttled", 0))


def stalled(text: str) -> float:
    """Return the seconds in which a control group had work and none of it had a core; 0 if they are not counted.

    `text`: that of the group's `cpu.pressure`. See Documentation/accounting/psi.rst of the kernel.
    """
    found = re.search(r"^full .*\btotal=(\d+)", text, re.MULTILINE)
    return int(found[1]) / 1e6 if found else 0.0


@dataclass(frozen=True, slots=True)
class Stream:
    """A TCP connection as its sender's kernel sees it (`ss -ti`), up to now.

    `sent`: bytes. `busy`: seconds in which there was data to send, or to be acknowledged. `window`: the part of these
    seconds in which only the receiver's window limited the stream. `buffer`: the part in which only the sender's buffer
    limited the stream (`tcp_info` of linux/tcp.h). The flag `app_limited` of `ss` is not read, because it does not show
    that a program sent too little: iperf3 at the rate of the link has it, too.
    """

    sent: int
    busy: float
    window: float
    buffer: float
    rate: float  # the delivery rate in bit/s, as the kernel measured it last


def streams(text: str, local: Iterable[str]) -> dict[tuple[str, str], Stream]:
    """Return the TCP connections whose own address is in `local`, from the output of `ss -tinH`.

    A key has the own end and the peer's end, each as `ss` prints it: the address, a colon and the port.
    """
    ours = set(local)
    found: dict[tuple[str, str], Stream] = {}
    ends: tuple[str, str] | None = None
    for line in text.splitlines():
        if not line[:1].isspace():
            words = line.split()
            ends = (words[-2], words[-1]) if len(words) > 1 else None
        elif ends is not None:
            host = ends[0].rpartition(":")[0].strip("[]").partition("%")[0].removeprefix("::ffff:")
            if host in ours:
                found[ends] = _stream(line)
    return found


_RATES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def _stream(line: str) -> Stream:
    times: Mapping[str, str] = dict(re.findall(r"\b(busy|rwnd_limited|sndbuf_limited):(\d+)ms", line))
    sent = re.search(r"\bbytes_sent:(\d+)", line)
    rate = re.search(r"\bdelivery_rate ([0-9.]+)([KMGT]?)bps", line)
    return Stream(
        sent=int(sent[1]) if sent else 0,
        busy=int(times.get("busy", 0)) / 1e3,
        window=int(times.get("rwnd_limited", 0)) / 1e3,
        buffer=int(times.get("sndbuf_limited", 0)) / 1e3,
        rate=float(rate[1]) * _RATES[rate[2]] if rate else 0.0,
    )
