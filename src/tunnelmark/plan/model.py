"""The words of a plan as frozen data: profile, topology, arm, workload, study, trial.

Everything here is checked when it is made from a file (see `load`), so later stages trust it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

from tunnelmark.plan import lengths
from tunnelmark.plan.design import ALL, Design
from tunnelmark.plan.enough import Enough
from tunnelmark.plan.fields import OfPath
from tunnelmark.plan.impairments import NOTHING, Direction
from tunnelmark.plan.routers import Router
from tunnelmark.units import Duration, Rate, Share, Size

Cascade = Literal["series", "nested"]
"""Several tunnels on one way: one on each link, through nodes that forward from one to the next, or each inside the one before."""

TO = "-to-"
"""Between the names of two nodes, in the name of a topology that says between which of its nodes the traffic runs."""

CARD: Literal["offloads", "none"] = "offloads"
"""The card of a profile file that states none, wherever the link can have it: that of real hosts (docs/decisions/011)."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a link does to packets: `forward` to those that leave the link's first node, `back` to those that reach it.

    `model`: the figures mean what they say (`stated`), or what netem makes of them. `unit`: one decision is for
    a wire packet, or for what the sender hands over (`gso`). `backend`: what carries the link; `auto` takes
    a kernel shaper where that is enough and else the emulator. `place`: where netem is. `card`: whether the
    nodes' network cards split and merge packets for them (TSO, USO, GRO), as real ones do.
    """

    name: str
    title: str
    source: str
    forward: Direction = NOTHING
    back: Direction = NOTHING
    model: Literal["stated", "netem"] = "stated"
    unit: Literal["wire", "gso"] = "wire"
    backend: Literal["auto", "emulator", "shaper", "netem"] = "auto"
    place: Literal["middle", "sender"] = "middle"
    card: Literal["offloads", "none"] = "none"
    auto: Rate | None = None
    """The highest bit/s that a rate `auto` may become, as long as it is not fixed (see `load.fix`); None: all are fixed."""

    @property
    def rate(self) -> Rate | None:
        """The rate forward, in which direction workloads measure; None: as fast as the machine, or not constant."""
        return self.forward.rate

    @property
    def carried(self) -> Rate | None:
        """The rate of full frames in bit/s that fits into this rate: less, where the link adds bytes to each frame."""
        return self.forward.carried

    @property
    def queue(self) -> Size | None:
        """The tail-drop buffer in front of that rate, in bytes."""
        return self.forward.queue

    @property
    def only_shaped(self) -> bool:
        """Whether a kernel shaper can do all of it: rates, each with a queue in bytes, or nothing."""
        ways = (self.forward, self.back)
        bounded = all(way.queue is not None for way in ways if way.rate is not None)
        return bounded and self.unit == "wire" and all(way.only_shaped for way in ways)


@dataclass(frozen=True, slots=True)
class Link:
    """A segment of the underlay: two nodes joined directly, or more joined by a switch; `mtu` in bytes of IP packet.

    `profile` is the link's own, whatever a study's profile is; None: that of the study.
    """

    name: str
    nodes: tuple[str, ...]
    mtu: int = 1500
    profile: Profile | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """The nodes of a lab, in order, the routers between them, and the links that join all of them.

    A VPN is deployed on the nodes; routers only forward. Traffic runs from the first node to the last. `hub` is the node that
    serves the others where a VPN needs one; None: the first, and its relay is the second. Nodes in `forwards` are routers, too, and
    all nodes are a chain: a VPN is on its two ends, unless its arm is a cascade (`Arm.cascade`).
    """

    name: str
    title: str
    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    routers: tuple[Router, ...] = ()
    hub: str | None = None
    forwards: tuple[str, ...] = ()

    @property
    def relay(self) -> str:
        """The node of a VPN's relay: the hub where one is named, else the second of three or more, else the first."""
        if self.hub is not None:
            return self.hub
        return self.nodes[1] if len(self.nodes) > 2 else self.nodes[0]

    @property
    def filtered(self) -> bool:
        """Whether a router translates addresses, or drops what a VPN may send."""
        return any(r.nat or r.block or r.allow or r.largest or r.udp_rate for r in self.routers)

    @property
    def open(self) -> Topology:
        """The topology with routers that only forward: it shows what the links themselves are worth."""
        return replace(self, routers=tuple(Router(router.name) for router in self.routers))

    def of_kinds(self, kinds: Sequence[str]) -> Topology:
        """The topology with routers of these kinds (see `Router.of_kind`): one for all that have an outside, or one for each of them.

        ValueError where there are neither one nor as many.
        """
        borders = [router.name for router in self.routers if router.outside is not None]
        given = [*kinds] * len(borders) if len(kinds) == 1 else [*kinds]
        if not borders or len(given) != len(borders):
            raise ValueError(
                f"{self.name} has {len(borders)} routers with an outside, and {len(kinds)} kinds are named"
            )
        named = dict(zip(borders, given, strict=True))
        routers = (router.of_kind(named[router.name]) if router.name in named else router for router in self.routers)
        title = f"{self.title}: {', '.join(kinds)}"
        return replace(self, name="+".join((self.name, *kinds)), title=title, routers=tuple(routers))

    def between(self, source: str, target: str) -> Topology:
        """The topology with these two nodes as the ends of the traffic: the first and the last, each the first of its links.

        ValueError where that cannot be.
        """
        for name in (source, target):
            if name not in self.nodes:
                raise ValueError(f"{self.name} has no node called {name!r}")
        if source == target or self.forwards:
            why = "is a chain, whose ends are the traffic's" if self.forwards else "sends nothing from a node to itself"
            raise ValueError(f"{self.name} {why}")
        nodes = (source, *(node for node in self.nodes if node not in (source, target)), target)
        links = tuple(
            replace(link, nodes=tuple(sorted(link.nodes, key=lambda node: node != source))) for link in self.links
        )
        title = f"{self.title}, from {source} to {target}"
        return replace(self, name=f"{self.name}+{source}{TO}{target}", title=title, nodes=nodes, links=links)

    @property
    def probed(self) -> Topology:
        """What probes look at in its place: with routers, the first link that has the study's profile, alone between its ends."""
        if not (self.routers or self.forwards):
            return self
        link = next((link for link in self.links if link.profile is None), self.links[0])
        return Topology(self.name, self.title, link.nodes, (link,))


@dataclass(frozen=True, slots=True)
class InnerNetwork:
    """A VXLAN or a Geneve on top of the overlay (of the underlay, without a VPN), in which workloads run: as pods of a cluster do.

    `mtu` in bytes of its interfaces; None: that of the overlay less the headers that it adds, so that nothing is fragmented.
    `ipv6`: its addresses are of IPv6 alone, and so is what workloads send.
    """

    mtu: int | None = None
    ipv6: bool = False
    kind: Literal["vxlan", "geneve"] = "vxlan"

    @property
    def title(self) -> str:
        """The kind's name as its RFC writes it."""
        return {"vxlan": "VXLAN", "geneve": "Geneve"}[self.kind]

    def __str__(self) -> str:
        return self.title + ("" if self.mtu is None else f", MTU {self.mtu}") + (", IPv6" if self.ipv6 else "")


@dataclass(frozen=True, slots=True)
class Arm:
    """A VPN with its options under a name of its own; `same_as` names the arm it must equal (A/A).

    `normalised`: the overlay interface gets the inner MTU and the queue that all normalised arms have; otherwise
    it stays as shipped. `underlay`: which of the nodes' addresses the VPN is given. `sysctls`: kernel settings of all nodes
    and routers, by sysctl(8)'s names. `inner`: the network on top of it in which workloads run, None: none. `cascade`: how its tunnels
    follow each other on a chain; None: it has one, from end to end. `behind_gateways`: it has one between the first and the last node that
    forward, and the ends are hosts behind those. `programs`: paths of programs that it runs in place of those that
    are installed, by their names. `title`: what it is in words; empty: the VPN's own.
    """

    name: str
    vpn: str
    options: Mapping[str, object] = field(default_factory=dict)
    same_as: str | None = None
    normalised: bool = False
    underlay: Literal["ipv4", "ipv6"] = "ipv4"
    sysctls: Mapping[str, str] = field(default_factory=dict)
    inner: InnerNetwork | None = None
    cascade: Cascade | None = None
    behind_gateways: bool = False
    programs: Mapping[str, str] = field(default_factory=dict)
    title: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadUse:
    """A workload with its options, under the name by which the study calls it.

    `shares` are those of its options that are a share of the rate of the link.
    """

    name: str
    workload: str
    options: Mapping[str, object] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    lengths: Mapping[str, OfPath] = field(default_factory=dict)

    def over(self, profile: Profile, path: Sequence[Profile] = ()) -> WorkloadUse:
        """The use on links of that profile: bit/s in place of shares of its rate, and as long as the path asks for (one such link, if none is given)."""
        if longer := lengths.over(self, path or (profile,)):
            return replace(self, options={**self.options, **longer}, lengths={}).over(profile)
        if not self.shares:
            return self
        rate = profile.carried
        if rate is None:  # refused when the study was loaded
            raise ValueError(f"{self.name} asks for a share of a rate, and the link has none")
        given = {name: str(Rate(round(share * rate))) for name, share in self.shares.items()}
        return replace(self, options={**self.options, **given}, shares={})


@dataclass(frozen=True, slots=True)
class Study:
    """A checked study file: what is compared with what, how often, and in which order (by `seed`).

    `inputs` holds every file that the study was made from, its own included: path (`profiles/gigabit.toml`)
    to text, so that a resumed run depends on no file that changed since.
    """

    name: str
    title: str
    description: str
    seed: int
    blocks: int
    ready_timeout: Duration
    arms: tuple[Arm, ...]
    profiles: tuple[Profile, ...]
    topologies: tuple[Topology, ...]
    workloads: tuple[WorkloadUse, ...]
    text: str  # the file itself, kept with the results
    inputs: Mapping[str, str] = field(default_factory=dict)
    smoke: bool = False  # in its short length, which shows whether it works and no more
    full: bool = False  # in its long length, which is that of what it repeats
    watch: tuple[str, ...] = ()  # the collectors of every trial
    attempts: int = 3  # of a trial at most, where the laboratory has spoilt those before
    replacements: int = 0  # blocks at most beyond the planned ones, for what stays void
    cores: int = 1  # of each node, on every machine
    enough: Enough | None = None  # until when blocks are added; None: their number is fixed
    design: Design = ALL  # what of all combinations is measured

    def cells(self) -> list[tuple[Arm, Profile, Topology, WorkloadUse]]:
        """What a block measures, in the order of the study's parts."""
        every = product(self.arms, self.profiles, self.topologies, self.workloads)
        return [cell for cell in every if self.design.has([part.name for part in cell])]

    @property
    def unrepeated(self) -> Study:
        """The study without another attempt at what is void."""
        return replace(self, attempts=1, replacements=0)


@dataclass(frozen=True, slots=True)
class Trial:
    """One measured run of one cell, on a deployment of its own, in one block."""

    position: int  # place in the order of the run, from 0
    block: int  # from 1
    arm: Arm
    profile: Profile
    topology: Topology
    use: WorkloadUse

    @property
    def id(self) -> str:
        """Unique in its study, and fit to be a folder name."""
        return f"{self.block:03d}.{self.arm.name}.{self.profile.name}.{self.topology.name}.{self.use.name}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A study with its trials in the order in which they run."""

    study: Study
    trials: tuple[Trial, ...]

    def of_block(self, number: int) -> Plan:
        """The study with the trials of that block alone."""
        return Plan(self.study, tuple(trial for trial in self.trials if trial.block == number))
