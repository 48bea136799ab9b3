"""Reads what `iperf3 --json` printed at a client, one file for each run: CONDITION/ARM/NAME.json.

CONDITION and ARM are names that the file of claims gives to a condition and an arm; case and punctuation do not count.
So those who repeat a source by hand can have its claims judged. A file of TCP counts as a run of the workload `tcp`, a
file of UDP as a run of `udp`. Files of any other workload are in a folder with the name of the workload:
CONDITION/ARM/WORKLOAD/NAME.json. iperf3 leaves the seconds that `--omit` names out of its sums.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tunnelmark.claims import run_statistics
from tunnelmark.claims.model import Cell, ClaimsFile, Quantity
from tunnelmark.claims.raw.raw_values import Number, RawCell, RawRun, RawValues, at, by_path, number, read_json
from tunnelmark.errors import UsageError


def retransmitted(data: object, file: Path) -> float:
    """Return the share of segments that were sent again, in per cent; StoreError if the file lacks a figure.

    The number of segments is taken as the bytes sent, divided by the payload of a segment.
    """
    segments = number(data, "end.sum_sent.bytes", file) / number(data, "start.tcp_mss_default", file)
    return 100 * number(data, "end.sum_sent.retransmits", file) / segments if segments else 0.0


_CPU = {
    "sender_cpu": by_path("end.cpu_utilization_percent.host_total"),
    "receiver_cpu": by_path("end.cpu_utilization_percent.remote_total"),
}
_FIGURES: Mapping[str, Mapping[str, Number]] = {
    "TCP": {
        "goodput": by_path("end.sum_received.bits_per_second"),
        "sent": by_path("end.sum_sent.bits_per_second"),
        "retransmits": by_path("end.sum_sent.retransmits"),
        "retransmit_share": retransmitted,
        "cwnd_max": by_path("end.streams.0.sender.max_snd_cwnd", 1 / 1024),
        "rtt": by_path("end.streams.0.sender.mean_rtt", 1e-3),
        "rtt_min": by_path("end.streams.0.sender.min_rtt", 1e-3),
        "mss": by_path("start.tcp_mss_default"),
        **_CPU,
    },
    "UDP": {
        "delivered": by_path("end.sum_received.bits_per_second"),
        "offered": by_path("end.sum_sent.bits_per_second"),
        "lost": by_path("end.sum_received.lost_percent"),
        "jitter": by_path("end.sum_received.jitter_ms"),
        **_CPU,
    },
}
"""By protocol and metric, the function that reads the metric from a file, in the metric's unit."""

_RATES = ("goodput", "delivered", "sent", "offered")

_DESIGN = (
    "Each file is a run by itself, so nothing is paired: a change of the machines in between would look like a VPN's.",
    "iperf3 counts the start of a stream unless it was called with --omit.",
)
_SECONDS = "Seconds are those that the client printed: of what it sent, or with --reverse of what arrived."


def read_runs(folder: Path, claims: ClaimsFile) -> RawValues:
    """Read the values of a folder of iperf3's files.

    UsageError if the folder holds no file for a condition and an arm of these claims; StoreError if a file lacks a
    figure.
    """
    runs: dict[tuple[str, str, str], list[tuple[Path, object]]] = defaultdict(list)
    for condition, place in _named(folder, claims.conditions):
        for arm, inside in _named(place, (*claims.arms, *claims.absent)):
            for file in sorted((*inside.glob("*.json"), *inside.glob("*/*.json"))):
                data = read_json(file)
                workload = file.parent.name if file.parent != inside else _protocol(data, file).lower()
                runs[condition, arm, workload].append((file, data))
    if not runs:
        raise UsageError(
            f"{folder} holds no file of iperf3 for a condition and an arm of {claims.name}",
            hint=f"it should hold CONDITION/ARM/NAME.json; conditions: {', '.join(claims.conditions)}; arms: {', '.join(claims.arms)}",
        )
    cells = {
        Cell(quantity.name, condition, arm): RawCell(
            tuple(_run(quantity, file, data) for file, data in files),
            len(files),
            "deviation" if quantity.statistic in run_statistics.SPREADS else "mean",
        )
        for (condition, arm, workload), files in runs.items()
        for quantity in claims.quantities.values()
        if quantity.workload == workload and _is_read(quantity)
    }
    return RawValues(folder.name, cells, single=False, design=_design(cells, claims))


def _named(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield each folder with one of these names, after that name; case and punctuation do not count."""
    known = {_plain(name): name for name in names}
    for place in sorted(folder.iterdir()):
        if place.is_dir() and (name := known.get(_plain(place.name))) is not None:
            yield name, place


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _protocol(data: object, file: Path) -> str:
    """Return TCP or UDP; TCP for a run that failed before it began, because its file does not name the protocol."""
    if isinstance(data, dict) and "error" in data and "test_start" not in data.get("start", {}):
        return "TCP"
    return str(at(data, "start.test_start.protocol", file))


def _is_read(quantity: Quantity) -> bool:
    statistic = quantity.statistic
    if statistic in run_statistics.SECONDS:
        return quantity.metric in _RATES
    return (statistic is None or statistic in run_statistics.SPREADS) and any(
        quantity.metric in figures for figures in _FIGURES.values()
    )


def _run(quantity: Quantity, file: Path, data: object) -> RawRun:
    if isinstance(data, dict) and data.get("error"):
        return RawRun(file.stem, None, f"iperf3 says {data['error']!r}")
    protocol = _protocol(data, file)
    get = _FIGURES.get(protocol, {}).get(quantity.metric)
    if get is None:
        return RawRun(file.stem, None, f"it is a run of {protocol}")
    if quantity.statistic not in run_statistics.SECONDS:
        return RawRun(file.stem, get(data, file) / quantity.factor)
    seconds = run_statistics.whole_seconds(_series(data, file))
    if len(seconds) < 2:
        return RawRun(file.stem, None, "it has fewer than two whole seconds")
    return RawRun(file.stem, run_statistics.made_of(seconds, str(quantity.statistic)) / quantity.factor)


def _series(data: object, file: Path) -> list[tuple[float | None, float]]:
    """Return the middle of each interval in seconds, and its rate in bit/s, without intervals that iperf3 omitted."""
    intervals = at(data, "intervals", file)
    places = range(len(intervals)) if isinstance(intervals, list) else range(0)
    sums = [f"intervals.{place}.sum" for place in places]
    return [
        (
            (number(data, f"{each}.start", file) + number(data, f"{each}.end", file)) / 2,
            number(data, f"{each}.bits_per_second", file),
        )
        for each in sums
        if not at(data, f"{each}.omitted", file)
    ]


def _design(cells: Mapping[Cell, RawCell], claims: ClaimsFile) -> tuple[str, ...]:
    absent = sorted(set(claims.quantities) - {cell.quantity for cell in cells})
    of_seconds = any(claims.quantities[cell.quantity].statistic in run_statistics.SECONDS for cell in cells)
    return (
        *_DESIGN,
        *((_SECONDS,) if of_seconds else ()),
        *((f"No figure in these files: {', '.join(absent)}.",) if absent else ()),
    )
