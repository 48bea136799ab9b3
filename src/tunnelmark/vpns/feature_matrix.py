"""The feature matrix: its criteria, and a row for each VPN, with a source and a date in every cell.

A row comes from a file of facts (`data/matrix/NAME.toml`, also for VPNs without a driver) and from what the lab
measured. The criteria are from two studies that compared VPNs by such a matrix: Kjorveziroski et al. 2024, section
3.1, and the comparison of ten mesh VPNs on transport, crypto and routing. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from tunnelmark.model.features import Fact

if TYPE_CHECKING:
    from tunnelmark.vpns.base import Driver

FeatureGroup = Literal["choosing", "design", "measured"]
FeatureVerdict = Literal["yes", "partly", "no"]


@dataclass(frozen=True, slots=True)
class Criterion:
    """A column of the matrix: its key, a short title, and the question that its cells answer."""

    key: str
    title: str
    question: str
    group: FeatureGroup


CRITERIA: tuple[Criterion, ...] = (
    Criterion("licence", "licence", "Is it open source, under which licence?", "choosing"),
    Criterion("active", "active", "Was there a release within the last six months?", "choosing"),
    Criterion("mesh", "mesh", "Do nodes reach each other directly, where possible?", "choosing"),
    Criterion("registration", "unattended", "Can a node join without a person?", "choosing"),
    Criterion("acl", "ACL", "Can it be said which nodes may talk to each other?", "choosing"),
    Criterion("granular_acl", "granular ACL", "Also by port and direction?", "choosing"),
    Criterion("architectures", "architectures", "Are there builds for x86 and ARM?", "choosing"),
    Criterion("nat_traversal", "NAT traversal", "Do nodes behind NATs find a direct path?", "choosing"),
    Criterion("relay_udp", "relay, UDP", "Can traffic be relayed over UDP, end-to-end encrypted?", "choosing"),
    Criterion("relay_tcp", "relay, TCP", "And over TCP, where UDP is blocked?", "choosing"),
    Criterion("subnet_routers", "subnet routers", "Can a node lead to hosts behind it?", "choosing"),
    Criterion("transport", "transport", "What carries the outer packets?", "design"),
    Criterion("encryption", "encryption", "The data channel's cipher as shipped", "design"),
    Criterion("handshake", "handshake", "How keys are agreed", "design"),
    Criterion("key_rotation", "key rotation", "When session keys are renewed", "design"),
    Criterion("routing", "routing", "How the way through the overlay is found", "design"),
    Criterion("roaming", "roaming", "Does a session survive a change of address?", "design"),
    Criterion("inner", "inner", "What the overlay carries", "design"),
    Criterion("ipv6", "IPv6 underlay", "Does it run over IPv6?", "design"),
    Criterion("mtu", "MTU", "Default MTU of the overlay interface", "design"),
    Criterion("datapath", "data path", "Kernel or user space, and how packets move", "design"),
    Criterion("threads", "threads", "On how many cores the data path can run", "design"),
    Criterion("offloads", "offloads", "Segmentation offloads that it uses", "design"),
    Criterion(
        "measured_first_packet",
        "first packet, 3 nodes",
        "Time until every node of three answers every other",
        "measured",
    ),
    Criterion("measured_mtu", "MTU seen", "MTU of the overlay interface", "measured"),
    Criterion("measured_threads", "threads seen", "Threads of the daemons of one node", "measured"),
    Criterion("measured_offloads", "offloads seen", "Whether the overlay interface takes super-packets", "measured"),
    Criterion("measured_memory", "memory at rest (RSS)", "Resident set size of the daemons of one node", "measured"),
)

REQUIRED = ("licence", "transport", "encryption", "handshake", "routing", "inner", "mtu", "datapath")
"""Criteria that every VPN with a driver answers; the contract suite asks for them."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A VPN's row: its cells by criterion. `reason` says why a VPN has no driver; "" if it has one."""

    name: str
    title: str
    homepage: str
    reason: str = ""
    cells: Mapping[str, Fact] = field(default_factory=dict)

    def plain(self) -> dict[str, object]:
        """Return the row as a dict that can be written as JSON."""
        return asdict(self) | {"cells": {key: asdict(fact) for key, fact in self.cells.items()}}


class MatrixFile(BaseModel):
    """A file of facts: each cell is a value, its source and its date.

    `title`, `homepage` and `reason` are for a VPN without a driver; `reason` says why it has none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = ""
    homepage: str = Field(default="", pattern=r"^(https://|$)")
    reason: str = ""
    cells: dict[str, tuple[str, str, str]] = Field(default_factory=dict)


def rows(
    drivers: Mapping[str, Driver[Any]], files: Mapping[str, MatrixFile], measured: Mapping[str, Mapping[str, Fact]]
) -> tuple[MatrixRow, ...]:
    """Return a row for every VPN: first those with a driver, then those without one.

    `files`: the files of facts, by VPN name. `measured`: the measured cells, by arm and then by criterion key. A VPN's
    row has the cells of its file and the measured cells of the arm with its name; if both have a cell, the row has the
    measured one.
    """
    found = []
    for name in [*drivers, *(name for name in sorted(files) if name not in drivers)]:
        file = files.get(name)
        cells = {key: Fact(*cell) for key, cell in (file.cells if file else {}).items()}
        driver = drivers.get(name)
        if driver is not None:
            found.append(MatrixRow(name, driver.title, driver.homepage, "", cells | dict(measured.get(name, {}))))
        elif file is not None:
            found.append(MatrixRow(name, file.title or name, file.homepage, file.reason, cells))
    return tuple(found)


def verdict(value: str) -> FeatureVerdict | None:
    """Return the verdict (yes, partly or no) with which a cell begins; None if it begins with another word."""
    first = re.split(r"[ ,:;]", value, maxsplit=1)[0].lower()
    return next((word for word in get_args(FeatureVerdict) if word == first), None)


def brief(value: str) -> str:
    """Return a cell's value without its conditions: `GPL-2.0` for `GPL-2.0 with OpenSSL exception`."""
    return re.split(r", | with | and | since | \(|; ", value, maxsplit=1)[0]


def gaps(row: MatrixRow, criteria: Iterable[Criterion] = CRITERIA) -> tuple[str, ...]:
    """Return the keys of the criteria for which a row has no cell."""
    return tuple(criterion.key for criterion in criteria if criterion.key not in row.cells)
