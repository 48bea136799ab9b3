"""Defines the tables and keys that study and topology files may have (for profiles: see `link_schema`).

Each field's description completes "should be ..."; `problems` shows it as the hint. Rules about
several fields or files are checked in `load` and in `topologies`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from tunnelmark.plan.enough import FLOOR
from tunnelmark.plan.fields import DurationText, JoinedName, NameField, RateText, ShareText
from tunnelmark.plan.model import InnerNetwork
from tunnelmark.plan.routers import KINDS, Dependence, Service
from tunnelmark.units import Duration

_NAME = "a name of lower-case letters, digits, dots and dashes that begins with a letter or digit, such as 'my-vpn.2'"


_DEPENDENCE = "'endpoint-independent', 'address-dependent' or 'address-and-port-dependent'"
LEAST_IPV6 = 1280
"""The least MTU in bytes that IPv6 requires of every link (RFC 8200, section 5)."""

MOST_NODES = 200
"""The most nodes of a topology: as many as a link's /24 has addresses for, with some to spare."""

_INNER = "a table such as { vxlan = true, mtu = 1230 }"
_SYSCTLS = 'a table of kernel settings such as "net.ipv4.tcp_reordering" = 127'
_ONLY = '"full" for what takes part only when the study runs with --full'
_SERVICES = 'a list such as ["udp", "tcp/443"]'

ServiceText = Annotated[Service, PlainValidator(Service.parse)]


def _nat(value: object) -> object:
    """Turn the name of a kind of NAT into the table that it means; any other value stays as it is."""
    if not isinstance(value, str) or value not in KINDS:
        return value
    kind = KINDS[value]
    return {"mapping": kind.mapping, "filtering": kind.filtering, "ports": kind.ports}


class TomlTable(BaseModel):
    """A TOML table: unknown keys are refused, and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class StudyTable(TomlTable):
    """The table `[study]` of a study file."""

    name: NameField = Field(description=_NAME)
    title: str = Field(description='one line of text for people, such as "Five VPNs"', min_length=1)
    description: str = Field(default="", description="text for people")
    seed: int = Field(default=1, ge=0, description="a whole number from 0 on; it decides the order of the trials")
    blocks: int = Field(ge=1, description="a whole number of blocks from 1 on, such as 5")
    precision: ShareText | None = Field(
        default=None, description="half the width that each ratio's interval may have at the end, such as '5 %'"
    )
    time_budget: DurationText | None = Field(
        default=None, description="a duration such as '30 min', after which no block is added"
    )
    max_blocks: int | None = Field(default=None, ge=1, description="a whole number of blocks that there are at most")
    ready_timeout: DurationText = Field(default=Duration(20), description="a duration such as '20 s'")
    profiles: list[JoinedName] = Field(
        min_length=1,
        description='a list of profile names such as ["gigabit"], or of several joined: "wifi-good+gigabit"',
    )
    topologies: list[JoinedName] = Field(
        min_length=1,
        description='a list of topology names such as ["pair"], with kinds of routers: ["behind-nat+symmetric"], or ends: ["lan-3+b-to-c"]',
    )
    watch: list[NameField] | None = Field(
        default=None,
        description='a list of what is watched in every trial, such as ["cpu", "memory"], or [] for nothing',
    )
    cores: int = Field(
        default=1, ge=1, le=64, description="a whole number of cores from 1 to 64 that each node has, on every machine"
    )
    attempts: int = Field(
        default=3,
        ge=1,
        le=9,
        description="a whole number of attempts from 1 to 9 that a trial may have when the laboratory spoils it",
    )
    replacements: int | None = Field(
        default=None,
        ge=0,
        description="a whole number of blocks from 0 on that may replace blocks with void trials",
    )
    sysctls: dict[str, Any] = Field(default_factory=dict, description=_SYSCTLS)
    inner: InnerTable | None = Field(default=None, description=_INNER)
    profile_stacks: bool = Field(
        default=False, description="true or false: stacks of both ends are recorded in every trial, for flame graphs"
    )

    @model_validator(mode="before")
    @classmethod
    def _floor(cls, data: Any) -> Any:
        """Set `blocks` to `FLOOR` if a study states a precision or a time budget, but not how many blocks."""
        if isinstance(data, dict) and "blocks" not in data and {"precision", "time_budget"} & data.keys():
            return {**data, "blocks": FLOOR}
        return data


class InnerTable(TomlTable):
    """The table `inner`: a VXLAN or Geneve network on top of the VPN, in which workloads run."""

    vxlan: Literal[True] | None = Field(default=None, description="true")
    geneve: Literal[True] | None = Field(default=None, description="true, in place of `vxlan`")
    mtu: int | None = Field(default=None, ge=576, le=9216, description="a whole number of bytes from 576 to 9216")
    ipv6: bool = Field(default=False, description="true or false: workloads send IPv6 alone, which needs 1280 bytes")

    @model_validator(mode="after")
    def _one_kind(self) -> InnerTable:
        """Raise ValueError unless exactly one of `vxlan` and `geneve` is stated."""
        if bool(self.vxlan) == bool(self.geneve):
            raise ValueError("should have either `vxlan = true` or `geneve = true`")
        return self

    @model_validator(mode="after")
    def _room(self) -> InnerTable:
        """Raise ValueError if IPv6 has less than 1280 bytes (RFC 8200, 5): Linux takes it off such interfaces."""
        if self.ipv6 and self.mtu is not None and self.mtu < LEAST_IPV6:
            raise ValueError(f"should have an MTU of {LEAST_IPV6} bytes or more, which IPv6 asks for")
        return self

    def network(self) -> InnerNetwork:
        """Return the network that the table describes."""
        return InnerNetwork(self.mtu, self.ipv6, "geneve" if self.geneve else "vxlan")


class ArmTable(TomlTable):
    """A table `[[arm]]`. Without `vpn`, the arm has the VPN of the arm in `same_as`, or the VPN with the arm's name."""

    name: NameField = Field(description=_NAME)
    vpn: str | None = Field(default=None, description="the name of a VPN, see `tunnelmark list vpns`")
    options: dict[str, Any] | None = Field(default=None, description="a table of the VPN's options")
    same_as: str | None = Field(default=None, description="the name of an earlier arm")
    normalised: bool = Field(default=False, description="true or false: the same inner MTU and queue for each arm")
    underlay: Literal["ipv4", "ipv6"] | None = Field(default=None, description='"ipv4" or "ipv6"')
    sysctls: dict[str, Any] | None = Field(default=None, description=_SYSCTLS)
    inner: InnerTable | None = Field(default=None, description=_INNER)
    cascade: Literal["series", "nested"] | None = Field(
        default=None, description='"series" (a tunnel on each link) or "nested" (each tunnel inside the one before)'
    )
    behind_gateways: bool = Field(
        default=False, description="true or false: the VPN joins two nodes that forward, and the ends are behind them"
    )
    programs: dict[str, str] | None = Field(
        default=None, description='a table of programs and their paths, such as {tincd = "/opt/tinc/tincd"}'
    )
    title: str = Field(default="", description="one line of text for people")
    only: Literal["full"] | None = Field(default=None, description=_ONLY)


class UseTable(TomlTable):
    """A table `[[workload]]`. Without `name`, it has the name of the workload."""

    workload: str = Field(description="the name of a workload, see `tunnelmark list workloads`")
    name: NameField | None = Field(default=None, description=_NAME)
    options: dict[str, Any] = Field(default_factory=dict, description="a table of the workload's options")
    smoke: dict[str, Any] = Field(
        default_factory=dict, description="a table of options that replace those above when the study runs with --smoke"
    )
    full: dict[str, Any] = Field(
        default_factory=dict, description="a table of options that replace those above when the study runs with --full"
    )
    only: Literal["full"] | None = Field(default=None, description=_ONLY)


class SmokeTable(TomlTable):
    """The table `[smoke]`: the size of a short run, which only shows whether the study works (`--smoke`)."""

    blocks: int = Field(default=1, ge=1, description="a whole number of blocks from 1 on")


class FullTable(TomlTable):
    """The table `[full]`: the size of a run as long as the published study that is repeated (`--full`)."""

    blocks: int | None = Field(default=None, ge=1, description="a whole number of blocks from 1 on")
    profiles: list[JoinedName] | None = Field(
        default=None, min_length=1, description="a list of profile names in place of the study's own"
    )


class CellsTable(TomlTable):
    """A table `[[exclude]]`, `[[include]]` or `[part]`: a set of cells. A key that is left out matches any name."""

    arms: list[str] = Field(default=[], description='a list of names of arms, such as ["netbird"]')
    profiles: list[str] = Field(default=[], description="a list of names of the study's profiles")
    topologies: list[str] = Field(default=[], description="a list of names of the study's topologies")
    workloads: list[str] = Field(default=[], description="a list of names of the study's workloads")


class StudyFile(TomlTable):
    """A study file."""

    study: StudyTable = Field(description="a table [study] with name, title, blocks, profiles and topologies")
    arm: list[ArmTable] = Field(min_length=1, description="one table [[arm]] or more, each with a name")
    workload: list[UseTable] = Field(min_length=1, description="one table [[workload]] or more, each with a workload")
    smoke: SmokeTable = Field(default_factory=SmokeTable, description="a table [smoke] with blocks")
    full: FullTable | None = Field(default=None, description="a table [full] with blocks or profiles")
    exclude: list[CellsTable] = Field(default=[], description="tables [[exclude]] of cells that are left out")
    include: list[CellsTable] = Field(default=[], description="tables [[include]] of excluded cells that are measured")
    part: CellsTable | None = Field(default=None, description="a table [part] of the cells that are measured of all")


def _counted(given: object) -> object:
    """Turn a number of nodes into their names n1, n2 and so on; any other value stays as it is."""
    if isinstance(given, int) and not isinstance(given, bool) and 2 <= given <= MOST_NODES:
        return [f"n{number}" for number in range(1, given + 1)]
    return given


class TopologyTable(TomlTable):
    """The table `[topology]` of a topology file."""

    title: str = Field(description="one line of text for people", min_length=1)
    nodes: Annotated[Annotated[list[NameField], Field(min_length=2)], BeforeValidator(_counted)] = Field(
        description='a list of two node names or more, such as ["a", "b"], or how many there are, from 2 to 200'
    )
    hub: str | None = Field(default=None, description="the name of the node that serves the others, such as 's'")
    forwards: list[str] = Field(
        default_factory=list, description='a list of the nodes that forward for the others, such as ["v1", "v2"]'
    )


class LinkTable(TomlTable):
    """A table `[[link]]` of a topology file."""

    name: NameField = Field(description=_NAME)
    nodes: Annotated[list[str], Field(min_length=2)] | Literal["all"] = Field(
        description='a list of two of the topology\'s nodes and routers or more, such as ["a", "b"], or "all" of its nodes'
    )
    mtu: int = Field(default=1500, ge=1280, le=9216, description="a whole number of bytes from 1280 to 9216")
    profile: JoinedName | None = Field(
        default=None, description="the name of a profile that this link has in every study, such as 'unshaped'"
    )


class NatTable(TomlTable):
    """The table `nat`, in the terms of RFC 4787. The name of a kind in RFC 3489 may be in its place."""

    mapping: Dependence = Field(default="endpoint-independent", description=_DEPENDENCE)
    filtering: Dependence = Field(default="address-and-port-dependent", description=_DEPENDENCE)
    ports: Literal["preserved", "random"] = Field(default="preserved", description="'preserved' or 'random'")
    hairpin: bool = Field(default=False, description="true or false")
    timeout: DurationText = Field(default=Duration(120), description="a duration such as '120 s'")


class RouterTable(TomlTable):
    """A table `[[router]]` of a topology file."""

    name: NameField = Field(description=_NAME)
    outside: str | None = Field(default=None, description="the name of the link on the side of the Internet")
    nat: Annotated[NatTable | None, BeforeValidator(_nat)] = Field(
        default=None,
        description="one of " + ", ".join(map(repr, KINDS)) + ", or a table with `mapping` and `filtering`",
    )
    block: list[ServiceText] = Field(default_factory=list, description=_SERVICES)
    allow: list[ServiceText] = Field(default_factory=list, description=_SERVICES)
    largest: int | None = Field(default=None, ge=68, le=9216, description="whole bytes of IP packet, such as 1400")
    udp_rate: RateText | None = Field(default=None, description="a rate above zero such as '1 Mbit/s'")


class TopologyFile(TomlTable):
    """A topology file; the file's name is the topology's."""

    topology: TopologyTable = Field(description="a table [topology] with title and nodes")
    router: list[RouterTable] = Field(default_factory=list, description="tables [[router]], each with a name")
    link: list[LinkTable] = Field(min_length=1, description="one table [[link]] or more, each with name and nodes")
