"""Reads raw data that a source's authors published, or that were measured by hand, so that claims are judged by them.

Each format has a module; `FORMATS` holds its function that reads a folder. The function returns values as `raw_values`
defines them; `recomputed` compares these values with the printed ones.
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
"""The function that reads a folder of each format. `iperf3`: CONDITION/ARM/NAME.json, as `iperf3 --json` prints them.
`knb`: the tree of JSON files, or tables, of runs of the Kubernetes network benchmark. `vpn-bench`: one dated run of the
mesh-VPN benchmark suite of that name.
"""


def further_runs(name: str, folder: Path) -> list[Path]:
    """Return the other folders next to `folder`, sorted: each holds the same benchmark's run of another date.

    `name`: the format, a key of `FORMATS`. [] if a folder of this format is not the run of one date.
    """
    if name != "vpn-bench":
        return []
    own = folder.resolve()
    return sorted(each for each in own.parent.iterdir() if each.is_dir() and each != own)


def read(name: str, folder: Path, claims: ClaimsFile) -> RawValues:
    """Read the values of a folder of raw data, by the names and in the units of the file of claims.

    `name`: the format, a key of `FORMATS`. Raises UnknownName if the format is unknown, UsageError if the folder has
    another structure, and StoreError if a file cannot be read.
    """
    if name not in FORMATS:
        raise UnknownName("format of raw data", name, FORMATS)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="name the folder with the raw data")
    return FORMATS[name](folder, claims)
