"""What the measurements of `emulators.py` come to: a table of medians, and the bars with what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from _emulators_work import Measured

VETH, EMULATOR, RATTAN, MAHIMAHI = "veth alone", "emulator", "rattan link", "Mahimahi mm-delay"
DELAYS_MS = (0.0, 5.0)

SUPER_GBIT_S = 8.0  # one TCP stream where the nodes hand over super-packets
FRAMES_GBIT_S = 2.0  # and frame by frame
FLOOD_MPPS = 0.4
ADDED_RTT_US = 30.0
FRAME_BYTES = 1514  # a wire packet is no longer: MTU and Ethernet header

Results = dict[tuple[str, float], list[Measured]]
Figure = Callable[[Measured], float]

FIGURES: dict[str, tuple[Figure, str]] = {
    "TCP Gbit/s": (lambda one: one.stream.gbit_s, ".2f"),
    "emulator CPU s/Gbit": (lambda one: one.stream.emulator_cores, ".3f"),
    "machine CPU s/Gbit": (lambda one: one.stream.machine_cores, ".3f"),
    "mean frame B": (lambda one: one.stream.frame_bytes, ".0f"),
    "retransmitted": (lambda one: one.stream.retransmitted, ".0f"),
    "RTT us": (lambda one: one.round_trip_us, ".0f"),
    "offered Mpps": (lambda one: one.flood.offered_mpps if one.flood else float("nan"), ".3f"),
    "delivered Mpps": (lambda one: one.flood.delivered_mpps if one.flood else float("nan"), ".3f"),
}


@dataclass(frozen=True)
class Verdict:
    """A bar, and what was measured."""

    what: str
    measured: str
    met: bool | None  # None: cannot be said

    def __str__(self) -> str:
        word = {True: "PASS", False: "FAIL", None: "NOT JUDGED"}[self.met]
        return f"{word:10}  {self.what}: {self.measured}"


def median(results: Results, key: tuple[str, float], figure: str) -> float:
    return statistics.median(FIGURES[figure][0](one) for one in results[key])


def table(results: Results, notes: dict[str, str]) -> str:
    """A row for each way and delay, in Markdown: medians and, in brackets, ranges."""
    rows = [["way", *FIGURES], ["---"] * (1 + len(FIGURES))]
    for (name, delay), all_of_it in results.items():
        row = [f"{name}, {delay:g} ms"]
        for figure, form in FIGURES.values():
            values = [figure(one) for one in all_of_it]
            least, middle, most = (format(by(values), form) for by in (min, statistics.median, max))
            row.append("-" if middle == "nan" else f"{middle} ({least}-{most})")
        rows.append(row)
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", *(f"{name}: {note}" for name, note in notes.items())])


def verdicts(results: Results, *, foreign: float) -> list[Verdict]:
    """All bars on the datapaths that the lab uses; `foreign`: CPU seconds a second that other work took at most.

    AF_PACKET stands in where a machine refuses AF_XDP: its figures are in the table, and judged where they are all there is.
    """
    ours = [name for name, delay in results if name.startswith(EMULATOR) and delay == 0]
    if any(name.endswith("--xdp") for name in ours):
        ours = [name for name in ours if not name.endswith("--port")]
    judged = [verdict for name in ours for verdict in _alone(results, name)]
    for name in ours:
        if not name.endswith("--tap"):  # the same work: the others get frame by frame too
            judged += [
                _beside(results, name, other, delay, foreign=foreign)
                for other in (RATTAN, MAHIMAHI)
                for delay in DELAYS_MS
            ]
    return judged


def _alone(results: Results, name: str) -> list[Verdict]:
    still = (name, 0.0)
    rate, bar = median(results, still, "TCP Gbit/s"), SUPER_GBIT_S if name.endswith("--tap") else FRAMES_GBIT_S
    flood = median(results, still, "delivered Mpps")
    judged = [
        Verdict(f"{name}: one TCP stream, at least {bar:g} Gbit/s", f"{rate:.2f}", rate >= bar),
        Verdict(f"{name}: small packets, at least {FLOOD_MPPS:g} Mpps", f"{flood:.3f}", flood >= FLOOD_MPPS),
    ]
    what = f"{name}: added to the round trip, at most {ADDED_RTT_US:g} us"
    if results.get((VETH, 0.0)):
        added = statistics.median(
            through.round_trip_us - plain.round_trip_us
            for through, plain in zip(results[still], results[VETH, 0.0], strict=True)
        )
        judged.append(Verdict(what, f"{added:.0f}", added <= ADDED_RTT_US))
    else:
        judged.append(Verdict(what, f"{VETH} was not measured", None))
    for delay in DELAYS_MS:
        runs = results[name, delay]
        longest, lost = max(one.decided_bytes for one in runs), max(one.unplanned for one in runs)
        text = f"{longest:.0f} bytes, at most {lost} packets lost unplanned in a run"
        judged.append(Verdict(f"{name}, {delay:g} ms: it decides on wire packets", text, 0 < longest <= FRAME_BYTES))
    return judged


def _beside(results: Results, name: str, other: str, delay: float, *, foreign: float) -> Verdict:
    what = f"{name}, {delay:g} ms: CPU per Gbit/s no more than {other}"
    if not results.get((other, delay)):
        return Verdict(what, f"{other} was not measured", None)
    pairs = {
        who: (median(results, (name, delay), figure), median(results, (other, delay), figure))
        for who, figure in (("emulator", "emulator CPU s/Gbit"), ("machine", "machine CPU s/Gbit"))
    }
    text = ", ".join(f"{who} {mine:.3f} and {theirs:.3f}" for who, (mine, theirs) in pairs.items())
    if not all(mine <= theirs for mine, theirs in pairs.values()):
        return Verdict(what, text, False)
    # The slower a way, the more of what others use during a Gbit is taken for its own: that must not make the emulator pass.
    others = foreign / median(results, (other, delay), "TCP Gbit/s")
    mine, theirs = pairs["machine"]
    if mine <= theirs - others:
        return Verdict(what, f"{text}, of which other work may be {others:.3f}", True)
    return Verdict(what, f"{text}; other work may be {others:.3f} of it", None)
