"""TCP: the bytes that iperf3 says it received, against what the receiving nodes' interfaces counted.

When a receiver stops counting, more is on its way, or waits in its socket: on a busy machine tens of megabytes. Whatever the
machine does, what was read had come, and what came had been sent.
"""

from __future__ import annotations

import json

from contract.crosschecks import AGREE, Crosscheck, Seen

_HEADERS = 20 + 20 + 12  # IPv4, TCP, its timestamps


def agrees(seen: Seen) -> None:
    said = _bytes(seen, "server", "sum_received")
    # Every node receives something in a ring; acknowledgements have no payload, and do not count.
    counted = sum(seen.payload(node, "rx", _HEADERS) for node in seen.ends.nodes)
    room = AGREE * counted + 100_000
    assert said <= counted + room, f"{said} said, {counted:.0f} counted"
    sent = _bytes(seen, "client", "sum_sent")
    assert counted <= sent + room, f"{counted:.0f} counted, {sent} sent"
    # The reading's own figure is of the window alone, without the warm-up: a tenth of the time.
    delivered = seen.value("goodput") * seen.reading.window / 8
    assert said / 4 <= delivered <= said + room, f"{said} said, {delivered:.0f} by the goodput"
    if seen.quiet:
        assert counted <= said + room, f"{said} said, {counted:.0f} counted"
    assert 0 < seen.value("mss") <= seen.mtu - _HEADERS + 12


def _bytes(seen: Seen, end: str, what: str) -> int:
    """What all servers or all clients say in sum."""
    reports = (json.loads(text) for name, text in seen.outputs.items() if name.startswith(end))
    return sum(int(report["end"][what]["bytes"]) for report in reports)


def used_bbr(seen: Seen) -> None:
    assert set(seen.reading.congestion_control) == {"bbr"}
    assert seen.value("goodput") > 0


CROSSCHECKS = [
    Crosscheck("tcp", agrees, {"duration": "3 s"}),
    # Longer, because what six streams have on their way when their receivers stop counting was 1.1 % of 2 s once.
    Crosscheck("tcp", agrees, {"duration": "4 s", "flows": "ring"}, name="ring"),
    Crosscheck("tcp", agrees, {"duration": "2 s", "streams": 4}, name="streams"),
    Crosscheck("tcp", used_bbr, {"duration": "1 s", "congestion_control": "bbr"}, name="bbr"),
]
