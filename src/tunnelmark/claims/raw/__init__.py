"""Raw data that a source's authors published, or that were measured by hand, as values that its claims are judged by, like those of a run.

A module for each format; `FORMATS` names them. `raw_values` is what they make, `recomputed` holds it against what was printed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tunnelmark.claims.model import ClaimsFile
from tunnelmark.claims.raw import iperf3_files, knb, vpn_bench
from tunnelmark.claims.raw.raw_values import RawValues
from tunnelmark.errors import UnknownName, UsageError

FORMATS: dict[str, Callable[[Path, ClaimsFile], RawValues]] = {
    "iperf3": iperf3_files.read_runs,
    "knb": knb.read_tree,
    "vpn-bench": vpn_bench.read_run,
}
"""By name: what reads a folder of that format. `iperf3`: CONDITION/ARM/NAME.json, as `iperf3 --json` prints them. `knb`: the tree of JSON files, or tables, of runs of the Kubernetes network benchmark;
`vpn-bench`: one dated run of the mesh-VPN benchmark suite of that name."""


def further_runs(name: str, folder: Path) -> list[Path]:
    """Runs of other dates next to a folder, for a format that has a folder for each date."""
    if name != "vpn-bench":
        return []
    own = folder.resolve()
    return sorted(each for each in own.parent.iterdir() if each.is_dir() and each != own)


def read(name: str, folder: Path, claims: ClaimsFile) -> RawValues:
    """The values of a folder of raw data, by the names and in the units of the file of claims.

    UnknownName for a format that is none, UsageError for a folder of another shape, StoreError for a file that cannot be read.
    """
    if name not in FORMATS:
        raise UnknownName("format of raw data", name, FORMATS)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="name the folder with the raw data")
    return FORMATS[name](folder, claims)
