"""What further hops cost, and whether it is the processor's time or bytes: one TCP stream of the study `cascade` on local links.

    python bench/hop_costs.py RESULTS

A VPN is there end to end over hosts that only forward, as a tunnel on each link (series), and as tunnels in one another (nested). End to end and series
send the same bytes over each link, and differ in who en- and decrypts; series and nested differ in the headers, too. Ratios are means of the
logarithm over blocks, with Student's interval of 95 %.
"""

from __future__ import annotations

import sys
from math import exp, log
from pathlib import Path
from statistics import median

from tunnelmark.analyse import judge
from tunnelmark.analyse.intervals import student
from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.record.store import load

PROFILE, WORKLOAD = "gigabit", "tcp"
HOPS = {1: "chain-1", 3: "chain-3"}
ARMS = ("direct", "wireguard-go", "wireguard-go-series", "wireguard-go-nested", "openvpn", "openvpn-series")
PAIRS = (
    ("wireguard-go-series", "wireguard-go"),
    ("openvpn-series", "openvpn"),
    ("wireguard-go-nested", "wireguard-go-series"),
)
COSTS = {
    "wire_bytes_per_byte": ("bytes on a link for a byte inside", "{:.2f}"),
    "cpu_per_gb_source": ("CPU of the sender, s/GB", "{:.1f}"),
    "cpu_per_gb_target": ("CPU of the receiver, s/GB", "{:.1f}"),
    "cpu_per_gb_others": ("CPU of VPNs on hosts between, s/GB", "{:.1f}"),
}


def main() -> None:
    """Print three tables in Markdown."""
    analysis = judge(load(Path(sys.argv[1])))
    print("\n\n".join(tables(analysis)))


def tables(analysis: Analysis) -> list[str]:
    """Goodput by hops; arms against each other with as many hops; costs over three hops."""
    goodput = {(arm, hops): _values(analysis, arm, hops, "goodput") for arm in ARMS for hops in HOPS}
    first = [
        [
            arm,
            *(f"{median(goodput[arm, hops].values()) / 1e6:.0f}" for hops in HOPS),
            _ratio(goodput[arm, 3], goodput[arm, 1]),
        ]
        for arm in ARMS
    ]
    second = [
        [f"{one} over {other}", *(_ratio(goodput[one, hops], goodput[other, hops]) for hops in HOPS)]
        for one, other in PAIRS
    ]
    third = [
        [title, *(form.format(median(_values(analysis, arm, 3, metric).values())) for arm in ARMS)]
        for metric, (title, form) in COSTS.items()
    ]
    return [
        _table(["TCP goodput", "one hop, Mbit/s", "three hops, Mbit/s", "three over one"], first),
        _table(["ratio", "one hop", "three hops"], second),
        _table(["over three hops", *ARMS], third),
    ]


def _values(analysis: Analysis, arm: str, hops: int, metric: str) -> dict[int, float]:
    cell = analysis.cell(arm, Scenario(PROFILE, HOPS[hops], WORKLOAD), metric)
    return {value.block: value.value for value in cell.values}


def _ratio(one: dict[int, float], other: dict[int, float]) -> str:
    effects = [log(one[block] / other[block]) for block in sorted(one.keys() & other.keys())]
    bounds = student(effects)
    assert bounds is not None, "it takes two blocks"
    return f"{exp(sum(effects) / len(effects)):.2f} ({exp(bounds[0]):.2f} to {exp(bounds[1]):.2f})"


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    main()
