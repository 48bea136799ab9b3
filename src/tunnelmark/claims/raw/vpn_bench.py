"""Reads one dated run of the mesh-VPN benchmark suite `vpn-bench`: VPN/PROFILE/HOST/BENCHMARK.json, one link per host.

Each file has a status; if it is "success", the benchmark's own data follow. iperf3 ran with `--bidir`, so its files
hold a stream each way: `sum_sent` is what the host sent, `sum_sent_bidir_reverse` what the other host sent at the same
time. The suite's duration is not read: `timing_breakdown.json` is of the last repetition, which ran only a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tunnelmark.claims.model import Cell, ClaimsFile
from tunnelmark.claims.raw.iperf3_files import retransmitted
from tunnelmark.claims.raw.raw_values import (
    Number,
    RawCell,
    RawRun,
    RawStatistic,
    RawValues,
    at,
    by_path,
    check_unit,
    combined,
    number,
    read_json,
)
from tunnelmark.errors import StoreError, UsageError

_HOST = re.compile(r"\d+_(\w+)")
_DATE = re.compile(r"\d\d\.\d\d\.\d{4}")

_TUNED = {"internal": ("Internal-gvisor",), "headscale": ("Headscale-reorder",)}
"""The arms that the folders of a run with tuned kernels ("-optimized") mean. The tree does not say which settings were
set. But the bare link's 363 and 64.2 Mbit/s are those that were printed for gVisor's settings, and Headscale was
printed with one set only.
"""

_NO_FILE = "no file"

_SUITE = ("tcp_iperf3", "udp_iperf3", "ping", "qperf", "rist_stream", "nix_cache", "parallel_tcp_iperf3")


@dataclass(frozen=True, slots=True)
class _Figure:
    """How a quantity is read: the file of a host, the function for its number, its unit, and how links are combined."""

    file: str
    get: Number
    unit: str
    statistic: RawStatistic = "mean"
    others: Mapping[str, tuple[Number, RawStatistic]] = field(default_factory=dict)


def _both_ways(data: object, file: Path) -> float:
    ways = ("sum_sent", "sum_sent_bidir_reverse")
    return sum(number(data, f"end.{way}.bits_per_second", file) for way in ways) / 2e6


_SENT = by_path("end.sum_sent.bits_per_second", 1e-6)
_RECEIVED_BACK = by_path("end.sum_received_bidir_reverse.bits_per_second", 1e-6)
_MEAN_LONGEST = by_path("rtt_max_ms.average")
_PARALLEL = "parallel_tcp_iperf3"

_FIGURES: dict[str, _Figure] = {
    "tcp": _Figure("tcp_iperf3", _SENT, "Mbit/s"),
    "tcp-sent": _Figure("tcp_iperf3", _SENT, "Mbit/s"),
    "tcp-received": _Figure(
        "tcp_iperf3",
        by_path("end.sum_received.bits_per_second", 1e-6),
        "Mbit/s",
        others={"what the other direction's stream, at the same time, brought": (_RECEIVED_BACK, "mean")},
    ),
    "tcp-least-run": _Figure("tcp_iperf3", _SENT, "Mbit/s", "least"),
    "tcp-most-run": _Figure("tcp_iperf3", _SENT, "Mbit/s", "largest"),
    "retransmits": _Figure("tcp_iperf3", by_path("end.sum_sent.retransmits"), "segments"),
    "retransmit-share": _Figure("tcp_iperf3", retransmitted, "%"),
    "cwnd": _Figure("tcp_iperf3", by_path("end.streams.0.sender.max_snd_cwnd", 1e-3), "kB"),
    "mss": _Figure("tcp_iperf3", by_path("start.tcp_mss_default"), "B"),
    "loaded-rtt": _Figure(
        "tcp_iperf3",
        by_path("end.streams.0.sender.mean_rtt", 1e-3),
        "ms",
        others={"iperf3's number as printed, which is in µs": (by_path("end.streams.0.sender.mean_rtt"), "mean")},
    ),
    "parallel": _Figure(_PARALLEL, _SENT, "Mbit/s", "sum", {"half of the sum of both directions": (_both_ways, "sum")}),
    "parallel-retransmits": _Figure(_PARALLEL, by_path("end.sum_sent.retransmits"), "segments", "sum"),
    "ping": _Figure("ping", by_path("rtt_avg_ms.average"), "ms"),
    "ping-max": _Figure(
        "ping",
        by_path("rtt_max_ms.max"),
        "ms",
        "largest",
        {"the mean over links and runs of each run's longest": (_MEAN_LONGEST, "mean")},
    ),
    "ping-deviation": _Figure("ping", by_path("rtt_mdev_ms.average"), "ms"),
    "ping-loss": _Figure("ping", by_path("packet_loss_percent.average"), "%"),
    "udp": _Figure("udp_iperf3", by_path("end.sum_received.bits_per_second", 1e-6), "Mbit/s"),
    "udp-sent": _Figure("udp_iperf3", by_path("end.sum_sent.bits_per_second", 1e-6), "Mbit/s"),
    "udp-loss": _Figure("udp_iperf3", by_path("end.sum_received.lost_percent"), "%"),
    "quic": _Figure("qperf", by_path("total_bandwidth_mbps.average"), "Mbit/s"),
    "quic-connect": _Figure("qperf", by_path("conn_time_ms.average"), "ms"),
    "quic-first-byte": _Figure("qperf", by_path("ttfb_ms.average"), "ms"),
    "quic-cpu": _Figure("qperf", by_path("cpu_usage_percent.average"), "%"),
    "rist": _Figure("rist_stream", by_path("network.quality.average"), "%"),
    "rist-median": _Figure("rist_stream", by_path("network.quality.percentiles.p50"), "%"),
    "rist-dropped": _Figure("rist_stream", by_path("network.packets_dropped.average"), "packets"),
    "rist-dropped-p25": _Figure("rist_stream", by_path("network.packets_dropped.percentiles.p25"), "packets"),
    "rist-dropped-p75": _Figure("rist_stream", by_path("network.packets_dropped.percentiles.p75"), "packets"),
    "rist-dropped-max": _Figure("rist_stream", by_path("network.packets_dropped.max"), "packets", "largest"),
    "rist-frames": _Figure("rist_stream", by_path("encoding.dropped_frames.average"), "frames"),
    "nix": _Figure("nix_cache", by_path("results.0.mean"), "s"),
}

_SUCCESS = {
    "tcp-success": "tcp_iperf3",
    "udp-success": "udp_iperf3",
    "quic-success": "qperf",
    "nix-success": "nix_cache",
}

_REBOOTS: dict[str, RawStatistic] = {
    "reboot": "mean",
    "reboot-first": "least",
    "reboot-middle": "median",
    "reboot-last": "largest",
}


def read_run(folder: Path, claims: ClaimsFile) -> RawValues:
    """Read the values of one dated run; UsageError for any other folder, such as the one that holds all dates."""
    arms = {arm: place for place in sorted(folder.iterdir()) if place.is_dir() for arm in _arms(folder, place, claims)}
    profiles = {
        (arm, condition): place / name
        for arm, place in arms.items()
        for condition in claims.conditions
        for name in (condition, f"{condition}_impairment")
        if (place / name).is_dir()
    }
    if not profiles:
        dates = sorted(each.name for each in folder.iterdir() if _DATE.match(each.name))
        raise UsageError(
            f"{folder} holds no run of vpn-bench with an arm and a condition of {claims.name}",
            hint=f"name the folder of one date: {', '.join(dates)}"
            if dates
            else "it should hold VPN/PROFILE/HOST/*.json",
        )
    hosts = sorted({host.name for place in profiles.values() for host in place.iterdir() if _HOST.fullmatch(host.name)})
    cells: dict[Cell, RawCell] = {}
    for (arm, condition), place in profiles.items():
        for name in claims.quantities:
            if (found := _cell(name, place, hosts, claims)) is not None:
                cells[Cell(name, condition, arm)] = found
    kept = _measured(cells)
    absent = sorted(set(claims.quantities) - {cell.quantity for cell in kept})
    return RawValues(folder.name, kept, single=True, design=_design(len(hosts), absent))


def _measured(cells: Mapping[Cell, RawCell]) -> dict[Cell, RawCell]:
    """Return the cells without those of a benchmark that was not run at all, such as a reboot under impairment."""
    return {cell: found for cell, found in cells.items() if any(each.failed != _NO_FILE for each in found.runs)}


def _arms(run: Path, folder: Path, claims: ClaimsFile) -> tuple[str, ...]:
    """Return the source's names of the arms that a folder holds; () if it has none."""
    known = (*claims.arms, *claims.absent)
    if run.name.endswith("-optimized"):
        return tuple(arm for arm in _TUNED.get(folder.name.casefold(), ()) if arm in known)
    return tuple(arm for arm in known if arm.casefold() == folder.name.casefold())


def _design(links: int, absent: list[str]) -> tuple[str, ...]:
    return (
        f"Each cell has one run on each of {links} links: their mean decides, as in the source, and there is no interval (n = 1).",
        "Arms were measured one after the other, so nothing is paired: a change of the network in between would look like a VPN's.",
        "iperf3 sent both ways at once on each link; the figures are those of the host's own stream, as its sender counts it.",
        "Benchmarks that failed were tried again, and VPNs restarted; what a first attempt would have given is not in the data.",
        *((f"No figure in these files: {', '.join(absent)}.",) if absent else ()),
    )


def _cell(name: str, place: Path, hosts: list[str], claims: ClaimsFile) -> RawCell | None:
    """Read the runs of a quantity from a profile's folder; None if the format has no such quantity."""
    if name in _FIGURES:
        figure = _FIGURES[name]
        check_unit(claims, name, figure.unit)
        content = (
            _pairs(place)
            if figure.file == _PARALLEL
            else {host: _Content.of(place / host / f"{figure.file}.json") for host in hosts}
        )
        return _of_links(figure, content, len(hosts))
    if name in _SUCCESS:
        check_unit(claims, name, "%")
        passed = {host: 100.0 * _Content.of(place / host / f"{_SUCCESS[name]}.json").passed for host in hosts}
        some = {"100 where a link at least has a value": max(passed.values())}
        return RawCell(tuple(RawRun(host, value) for host, value in passed.items()), len(hosts), readings=some)
    if name in _REBOOTS:
        check_unit(claims, name, "s")
        files = [place / host / "reboot_connection_timings.json" for host in hosts]
        runs = tuple(RawRun(file.parent.name, *_reconnected(file)) for file in files)
        return RawCell(runs, len(hosts), _REBOOTS[name])
    if name == "suite-success":
        check_unit(claims, name, "%")
        passes = {kind: all(each.passed for each in _files(place, kind, hosts)) for kind in _SUITE}
        return RawCell(tuple(RawRun(kind, 100.0 * passed) for kind, passed in passes.items()), len(_SUITE))
    return _of_one_link(name, place, hosts, claims)


def _files(place: Path, kind: str, hosts: list[str]) -> list[_Content]:
    if kind == _PARALLEL:
        return [_Content.of(place / f"{kind}.json")]
    return [_Content.of(place / host / f"{kind}.json") for host in hosts]


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of a file: its data, or why there are none, and the hosts at both ends (`ends`)."""

    file: Path
    data: object = None
    failed: str = ""
    attempts: int = 1
    ends: tuple[str, str] = ("", "")

    @property
    def passed(self) -> bool:
        return not self.failed

    @classmethod
    def of(cls, file: Path) -> _Content:
        if not file.is_file():
            return cls(file, failed=_NO_FILE)
        found = read_json(file)
        status = at(found, "status", file)
        if not isinstance(found, dict) or status not in ("success", "error"):
            raise StoreError(f"{file} has the status {status!r}", hint="is it of another version of the benchmark?")
        meta = found.get("meta") or {}
        ends = (str(meta.get("source", "")), str(meta.get("target", "")))
        attempts = int(meta.get("test_attempts", 1))
        if status == "error":
            why = "timed out" if found.get("timeout") else f"failed ({found.get('error_type', 'no reason given')})"
            return cls(
                file, failed=f"{why} after {attempts} attempt{'s' * (attempts != 1)}", attempts=attempts, ends=ends
            )
        return cls(file, at(found, "data", file), attempts=attempts, ends=ends)


def _pairs(place: Path) -> dict[str, _Content]:
    """Read each link's result from the one file of the benchmark that loads all links at once."""
    whole = _Content.of(place / f"{_PARALLEL}.json")
    if whole.failed:
        return {"all links": whole}
    pairs = at(whole.data, "pairs", whole.file)
    found = {}
    for place_of_pair, _ in enumerate(pairs if isinstance(pairs, list) else []):
        pair = at(whole.data, f"pairs.{place_of_pair}", whole.file)
        assert isinstance(pair, dict)
        ends = (str(pair.get("source", "")), str(pair.get("target", "")))
        failed = "" if "result" in pair else f"failed ({pair.get('error_type', 'no reason given')})"
        found[f"{ends[0]} to {ends[1]}"] = _Content(whole.file, pair.get("result"), failed, whole.attempts, ends)
    return found


def _of_links(figure: _Figure, content: Mapping[str, _Content], links: int) -> RawCell:
    runs = tuple(
        RawRun(name, None if each.failed else figure.get(each.data, each.file), each.failed, each.attempts)
        for name, each in content.items()
    )
    readings = {}
    for words, (get, statistic) in figure.others.items():
        values = [get(each.data, each.file) for each in content.values() if not each.failed]
        if (value := combined(values, statistic)) is not None:
            readings[words] = value
    return RawCell(runs, links, figure.statistic, readings)


def _of_one_link(name: str, place: Path, hosts: list[str], claims: ClaimsFile) -> RawCell | None:
    """Return a quantity of one link, such as tcp-luna-lom; None if the name is not one, or no file is of that link.

    tcp-lom-luna is then the stream back, which ran at the same time.
    """
    base, *ends = name.rsplit("-", 2)
    if base not in ("tcp", "ping") or len(ends) != 2 or not set(ends) <= {host.split("_", 1)[1] for host in hosts}:
        return None
    figure = _FIGURES[base]
    check_unit(claims, name, figure.unit)
    for host in hosts:
        content = _Content.of(place / host / f"{figure.file}.json")
        if content.ends in ((ends[0], ends[1]), (ends[1], ends[0])):
            back = content.ends != (ends[0], ends[1]) and base == "tcp"
            get = by_path("end.sum_sent_bidir_reverse.bits_per_second", 1e-6) if back else figure.get
            value = None if content.failed else get(content.data, content.file)
            return RawCell((RawRun(host, value, content.failed, content.attempts),), 1)
    return None


def _reconnected(file: Path) -> tuple[float | None, str]:
    """Return the seconds until the first other host answered through the VPN, as in the suite's reports, and "".

    Without such a time: None, and the reason.
    """
    if not file.is_file():
        return None, _NO_FILE
    results = at(read_json(file), "vpn_results", file)
    times = [str(at(each, "time_took", file)) for each in results.values()] if isinstance(results, dict) else []
    try:
        seconds = [
            sum(float(part) * 60**power for power, part in enumerate(reversed(time.split(":")))) for time in times
        ]
    except ValueError:
        raise StoreError(f"{file}: {times} are not times", hint="is it of another version of the benchmark?") from None
    return (min(seconds), "") if seconds else (None, "no host answered")
