"""Reads runs of the Kubernetes network benchmark (knb): NUMBER-CONFIGURATION/...-lossLp-delayD.json, or a table as CSV.

Each file is a list of runs with the bandwidth in Mbit/s and the CPU of both nodes in %. The benchmark writes a
bandwidth of -1 if the run failed. NUMBER-CONFIGURATION-k8s-api-bench/*.csv are runs of `hey` against the Kubernetes
API: a row for each request, with seconds and status.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from tunnelmark.claims.model import Cell, ClaimsFile
from tunnelmark.claims.raw.raw_values import RawCell, RawRun, RawStatistic, RawValues, at, check_unit, number, read_json
from tunnelmark.errors import StoreError, UsageError

PLANNED = {"native": 100}
"""How many runs each cell without impairment has, according to the source."""

PLANNED_IMPAIRED = 10
REQUESTS = 5000
"""How many requests each run against the API has, according to the source."""

_REQUESTS_RANKED = (
    "The API's runs are ranked, and not its requests, which share their run's conditions. The source ranked the requests: "
    "its p of 0.22 for the two bare links is that of 50,000 requests each."
)

_NAME = re.compile(r"-loss(\d+)p-delay(\d+)(?:ms)?$")
_UNITS: dict[str, tuple[str, RawStatistic]] = {
    "": ("Mbit/s", "mean"),
    "-sd": ("Mbit/s", "deviation"),
    "-cpu": ("% of eight hardware threads", "mean"),
}


@dataclass(frozen=True, slots=True)
class _Row:
    """One run: its configuration, protocol and condition, Mbit/s (-1: failed), and the CPU of the sending node in %."""

    configuration: str
    protocol: str
    condition: str
    name: str
    bandwidth: float
    cpu: float


def read_tree(folder: Path, claims: ClaimsFile) -> RawValues:
    """Read the values of a tree of results, or of a repository with `results-json` and `results-k8s-api`.

    UsageError if it holds no run of an arm and a condition of these claims; StoreError if a file cannot be read.
    """
    whole = (folder / "results-json").is_dir()
    tree = folder / "results-json" if whole else folder
    arms = {_plain(arm): arm for arm in (*claims.arms, *claims.absent)}
    runs: dict[tuple[str, str, str], list[_Row]] = defaultdict(list)
    for row in list(_from_json(tree)) or _from_tables(tree):
        arm = arms.get(_plain(row.configuration))
        if arm is not None and row.condition in claims.conditions:
            runs[row.protocol, row.condition, arm].append(row)
    api, short = _api(folder / "results-k8s-api" if whole else folder, arms)
    if "api" in claims.quantities and api:
        check_unit(claims, "api", "ms")
    cells = _cells(runs, claims) | {
        cell: found for cell, found in api.items() if "api" in claims.quantities and cell.condition in claims.conditions
    }
    if not cells:
        raise UsageError(
            f"{folder} holds no run of knb with an arm and a condition of {claims.name}",
            hint="it should hold NUMBER-CONFIGURATION/*-lossLp-delayD.json, or all.csv",
        )
    return RawValues(folder.name, cells, single=False, design=_design(cells, claims, short))


def _cells(runs: Mapping[tuple[str, str, str], Sequence[_Row]], claims: ClaimsFile) -> dict[Cell, RawCell]:
    cells = {}
    for (protocol, condition, arm), rows in runs.items():
        for suffix, (unit, statistic) in _UNITS.items():
            if (name := f"{protocol}{suffix}") not in claims.quantities:
                continue
            check_unit(claims, name, unit)
            given = tuple(
                RawRun(row.name, row.cpu if suffix == "-cpu" else row.bandwidth)
                if row.bandwidth > 0
                else RawRun(row.name, None, f"nothing arrived (bandwidth {row.bandwidth:g})")
                for row in rows
            )
            cells[Cell(name, condition, arm)] = RawCell(given, PLANNED.get(condition, PLANNED_IMPAIRED), statistic)
    return cells


def _design(cells: Mapping[Cell, RawCell], claims: ClaimsFile, short: Sequence[str]) -> tuple[str, ...]:
    absent = sorted(set(claims.quantities) - {cell.quantity for cell in cells})
    return (
        "Each configuration was measured by itself, so nothing is paired: a change of the machines in between would look like a VPN's.",
        "Runs that failed have a bandwidth of -1: they are left out of means, as the source's tables leave them out, and are listed.",
        "A standard deviation is one figure of all runs, and has no interval.",
        *((_REQUESTS_RANKED,) if any(cell.quantity == "api" for cell in cells) else ()),
        *((f"Files that end before {REQUESTS} requests: {', '.join(short)}.",) if short else ()),
        *((f"No figure in these files: {', '.join(absent)}.",) if absent else ()),
    )


def _api(folder: Path, arms: Mapping[str, str]) -> tuple[dict[Cell, RawCell], tuple[str, ...]]:
    """Return the mean response time of each run against the API in ms, and the files that lack some of its requests."""
    cells, short = {}, []
    for place in sorted(folder.glob("*-k8s-api-bench")):
        name = _plain(place.name.removesuffix("-k8s-api-bench"))
        arm = arms.get(name) or arms.get(f"{name}direct")
        if arm is None:
            continue
        runs = []
        for file in sorted(place.glob("*.csv")):
            try:
                lines = [line for line in _lines(file) if line["status-code"]]
                times = [1000 * float(line["response-time"]) for line in lines if line["status-code"] == "200"]
            except (KeyError, TypeError, ValueError) as error:
                raise StoreError(f"{file} is not a result of hey: {error!r}", hint="fetch the raw data again") from None
            if len(lines) < REQUESTS:
                short.append(f"{place.name}/{file.name} ({len(lines)})")
            failed = "" if times else "no request was answered"
            runs.append(RawRun(file.stem, fmean(times) if times else None, failed))
        cells[Cell("api", "native", arm)] = RawCell(tuple(runs), PLANNED_IMPAIRED)
    return cells, tuple(short)


def _from_json(folder: Path) -> Iterator[_Row]:
    for file in sorted(folder.glob("*/*.json")):
        named = _NAME.search(file.stem)
        if named is None:
            continue
        content = read_json(file)
        if not isinstance(content, list):
            raise StoreError(f"{file} is not a list of runs", hint="is it of another version of the benchmark?")
        for run in content:
            pods = at(run, "data", file)
            for protocol in ("tcp", "udp"):
                if not isinstance(pods, dict) or protocol not in pods.get("pod2pod", {}):
                    continue
                found = at(pods, f"pod2pod.{protocol}", file)
                yield _Row(
                    file.parent.name,
                    protocol,
                    _condition(named[1], named[2]),
                    f"{at(run, 'metadata.name', file)} of {at(run, 'metadata.date', file)}",
                    number(found, "bandwidth", file),
                    number(found, "client.cpu.total", file),
                )


def _from_tables(folder: Path) -> Iterator[_Row]:
    """Read runs from tables (CSV): one for each configuration, or one for all."""
    files = sorted(folder.glob("*/all.csv")) or sorted(folder.glob("all*.csv"))
    for file in files:
        for place, row in enumerate(_lines(file), start=2):
            try:
                if row["benchmark-type"] != "pod2pod":
                    continue
                yield _Row(
                    row["benchmark-name"],
                    row["transport-protocol"],
                    _condition(row["loss"], row["delay"]),
                    f"line {place}",
                    float(row["bandwidth"]),
                    float(row["client-cpu"]),
                )
            except (KeyError, TypeError, ValueError) as error:
                raise StoreError(
                    f"{file}:{place} is not a run of knb: {error!r}", hint="is it of another version of the benchmark?"
                ) from None


def _lines(file: Path) -> list[dict[str, str]]:
    """Return the rows of a table, each by column; StoreError if the file cannot be read."""
    try:
        with file.open(newline="") as content:
            return list(csv.DictReader(content))
    except (OSError, ValueError, csv.Error) as error:
        raise StoreError(f"{file} cannot be read: {error}", hint="fetch the raw data again") from None


def _condition(loss: str, delay: str) -> str:
    """Return the condition's name, such as "loss-1-delay-10" (loss in %, delay in ms); "native" without any."""
    parts = [f"{name}-{int(value)}" for name, value in (("loss", loss), ("delay", delay)) if int(value)]
    return "-".join(parts) or "native"


def _plain(name: str) -> str:
    """Return a name without what differs in spelling: "11-native-mtu1230" and "MTU 1230" both give "mtu1230"."""
    return re.sub(r"^\d+-|native-|[^a-z0-9]", "", re.sub(r"^\d+-", "", name.casefold()))
