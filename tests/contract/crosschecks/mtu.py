"""The largest packet: what ping with the don't-fragment bit finds, and what the interface's own MTU allows."""

from __future__ import annotations

import json

from contract.crosschecks import AGREE, Crosscheck, Seen
from tunnelmark.workloads import mtu as mtu_workload

_TIMESTAMPS = 12  # bytes of option in every segment
_HEADERS = 20 + 20  # IPv4, TCP
_UNREAD = 4_000_000  # bytes a stream: up to 3.3 MB of one were seen, at several Gbit/s


def agrees(seen: Seen) -> None:
    mtu = seen.value("mtu")
    assert seen.value("interface") == seen.mtu
    assert mtu <= seen.mtu
    # tinc alone gives its interface more than it can carry, and tells senders by ICMP of the path that it has found.
    assert mtu == seen.mtu or (seen.mtu == 1500 and 1400 < mtu < 1500)
    assert seen.value("black_hole") == 0
    assert seen.value("mss") <= mtu - _HEADERS - _TIMESTAMPS
    said = sum(json.loads(seen.outputs[name])["end"]["sum_received"]["bytes"] for name in ("server", "server_576"))
    _, *clients = mtu_workload._documents(seen.outputs["client"], 3)
    sent = sum(client["end"]["sum_sent"]["bytes"] for client in clients)
    counted = seen.payload(seen.ends.target, "rx", _HEADERS + _TIMESTAMPS)
    room = AGREE * counted + 100_000  # on a lossy link segments may arrive twice
    assert said <= counted + room, (said, counted)
    assert counted <= sent + room, (counted, sent)
    if seen.quiet:  # when its time is over iperf3 leaves unread what the kernel has, which without a core is any amount
        assert counted <= said + room + (0 if seen.lossy else 2 * _UNREAD), (said, counted)


CROSSCHECKS = [Crosscheck("mtu", agrees, {"sizes": [576], "duration": "1 s"}, alone=True)]
