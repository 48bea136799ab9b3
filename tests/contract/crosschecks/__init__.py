"""An independent look at each workload's traffic: one file a workload, with its `CROSSCHECKS`.

A look says which options to run the workload with, and whether what it reported agrees with what the nodes' interfaces
counted meanwhile (or with a capture, or a server's own log), which know nothing of the workload.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunnelmark.workloads.base import Endpoints, Reading

AGREE = 0.01
"""How far a workload's own figure may be from the independent one, as a share of it."""

Counters = Mapping[str, Mapping[str, int]]
"""What each node's overlay interface counted during the traffic, by node: `rx_bytes`, `tx_packets`, ... (sysfs names).

`unread` are the times that what crossed it by UDP found no room in the socket of the workload's program, which a busy machine
kept waiting: a datagram each, or several where the socket takes them in one piece (UDP_GRO).
"""


@dataclass(frozen=True)
class Seen:
    """One run of a workload: what it reported, what its programs printed, and what the interfaces counted."""

    reading: Reading
    outputs: Mapping[str, str]
    counted: Counters
    ends: Endpoints
    header: Mapping[
        str, Mapping[str, int]
    ]  # bytes of link header that a packet counts there, by node and way ("rx", "tx")
    mtu: int  # of the source's overlay interface, in bytes
    lossy: bool
    quiet: bool  # whether this is a proof, for which the machine does nothing else
    queue_drops: int  # packets that the machine's cores had no room for meanwhile, whosever they were
    paused: float  # seconds of the machine's longest pause meanwhile; 0 where nothing sees them
    raw: Path  # the folder of what the programs printed

    @property
    def clean(self) -> bool:
        """Whether neither the link nor the machine has lost a packet."""
        return not self.lossy and not self.queue_drops

    def value(self, metric: str) -> float:
        """The value of a metric for the whole window; KeyError if the reading has none."""
        return {sample.metric: sample.value for sample in self.reading.samples if sample.time is None}[metric]

    def payload(self, node: str, way: str, headers: int) -> float:
        """Payload bytes that went through a node's overlay interface (`way`: "rx" or "tx"), by its counters.

        `headers` are the bytes of IP and transport header in each packet. A super-packet is counted as one packet with one
        header, so this holds with segmentation offload, too.
        """
        counted = self.counted[node]
        return counted[f"{way}_bytes"] - counted[f"{way}_packets"] * (headers + self.header[node][way])


@dataclass(frozen=True)
class Crosscheck:
    """A workload with options that make a short run, and the check (by assertions) that its figures are true.

    `alone`: it must have a mesh of its own, as in a study. What one workload leaves behind disturbs it: on a lossy link every
    lost fragment of a VPN that lets its packets be split keeps memory of the receiver for 30 s, and when 4 MB are
    full (ipfrag_high_thresh, ipfrag_time) no packet that is split arrives.

    `in_time`: it needs a run whose sender kept up. Without, what is compared are counts, which are the same however late they came to be.
    """

    workload: str
    agrees: Callable[[Seen], None]
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""  # beside other looks at the same workload
    alone: bool = False
    in_time: bool = True

    @property
    def id(self) -> str:
        return f"{self.workload}-{self.name}" if self.name else self.workload


def all_crosschecks() -> list[Crosscheck]:
    """The looks of every file in this folder."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [look for name in names for look in importlib.import_module(f"{__name__}.{name}").CROSSCHECKS]
