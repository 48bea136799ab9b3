"""The data types of a plan, all frozen: profile, topology, arm, workload, study, trial.

Their values are checked when they are made from a file (see `load`), so later stages trust them.
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
"""How several tunnels run along a chain of nodes.

`series`: one tunnel on each link; the nodes between forward from one to the next. `nested`: each inside the one before.
"""

TO = "-to-"
"""Joins two nodes in a topology's name: in `lan-3+b-to-c`, traffic runs from node b to node c."""

CARD: Literal["offloads", "none"] = "offloads"
"""The `card` if a profile file states none, and the link can have it: that of real hosts (docs/decisions/011)."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a link does to packets: `forward` to those that leave the link's first node, `back` to those that reach it.

    `model`: the link does exactly what the figures say (`stated`), or what netem makes of them (`netem`).
    `unit`: a random decision is made for each wire packet, or for all that the sender hands over at once (`gso`).
    `backend`: what carries the link. `auto` takes a kernel shaper if that can do all of it, and otherwise the emulator.
    `place`: the node on which netem runs.
    `card`: whether the nodes' network cards split and merge packets for them (TSO, USO, GRO), as real ones do.
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
    """The highest rate in bit/s that `rate = "auto"` may become (see `load.fix`); None if every rate is fixed."""

    @property
    def rate(self) -> Rate | None:
        """The forward rate (workloads measure forward); None if the link has no rate limit, or a recorded trace."""
        return self.forward.rate

    @property
    def carried(self) -> Rate | None:
        """The bit/s of full frames that the forward rate carries: less than it if the link adds bytes to each frame.

        None if there is no forward rate.
        """
        return self.forward.carried

    @property
    def queue(self) -> Size | None:
        """The tail-drop queue in front of the forward rate, in bytes; None if none is stated in bytes."""
        return self.forward.queue

    @property
    def only_shaped(self) -> bool:
        """Whether a kernel shaper can do all of it: in each direction nothing, or a rate with a queue in bytes."""
        ways = (self.forward, self.back)
        bounded = all(way.queue is not None for way in ways if way.rate is not None)
        return bounded and self.unit == "wire" and all(way.only_shaped for way in ways)


@dataclass(frozen=True, slots=True)
class Link:
    """A segment of the underlay: it joins two nodes directly, or more of them by a switch.

    `mtu`: the largest IP packet, in bytes. `profile`: its profile in every study; None: the study's profile.
    """

    name: str
    nodes: tuple[str, ...]
    mtu: int = 1500
    profile: Profile | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """The nodes of a lab, in order, the routers between them, and the links that join all of them.

    A VPN is deployed on the nodes; routers only forward. Traffic runs from the first node to the last.
    `hub`: the node that serves the others if a VPN needs such a node; None: the first node. A VPN's relay may run on
    another node (`relay`).
    `forwards`: the nodes that forward for the others. If there are any, all nodes form a chain, and a VPN runs only on
    the chain's two ends, unless the arm is a cascade (`Arm.cascade`) or has gateways (`Arm.behind_gateways`).
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
        """The node of a VPN's relay: the hub if one is named, else the second of three or more, else the first."""
        if self.hub is not None:
            return self.hub
        return self.nodes[1] if len(self.nodes) > 2 else self.nodes[0]

    @property
    def filtered(self) -> bool:
        """Whether any router translates addresses, or drops packets by their kind, size or rate."""
        return any(r.nat or r.block or r.allow or r.largest or r.udp_rate for r in self.routers)

    @property
    def open(self) -> Topology:
        """The same topology with routers that only forward, so that nothing but its links limits traffic."""
        return replace(self, routers=tuple(Router(router.name) for router in self.routers))

    def of_kinds(self, kinds: Sequence[str]) -> Topology:
        """Return the topology with its routers changed to other kinds, if they have an outside link (`Router.of_kind`).

        One kind holds for all such routers; several kinds are for one router each. ValueError if their numbers differ,
        or if no router has an outside link.
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
        """Return the topology with traffic from `source` to `target`: they become its first and its last node.

        On its own links, `source` becomes the first node, so its packets go forward.
        ValueError if a name is not a node's, if both are the same, or if the topology is a chain.
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
        """The topology as link checks probe it.

        If it has routers or is a chain, only its first link with the study's profile is left, with the nodes on it.
        """
        if not (self.routers or self.forwards):
            return self
        link = next((link for link in self.links if link.profile is None), self.links[0])
        return Topology(self.name, self.title, link.nodes, (link,))


@dataclass(frozen=True, slots=True)
class InnerNetwork:
    """A VXLAN or Geneve network on top of the overlay, in which workloads run, as pods of a cluster do.

    Without a VPN it is on top of the underlay.
    `mtu`: the MTU of its interfaces, in bytes. None: the overlay's MTU less the headers that are added, so nothing is
    fragmented.
    `ipv6`: its addresses are IPv6 only, so workloads send IPv6 only.
    """

    mtu: int | None = None
    ipv6: bool = False
    kind: Literal["vxlan", "geneve"] = "vxlan"

    @property
    def title(self) -> str:
        """The network's kind as its RFC spells it: `VXLAN` or `Geneve`."""
        return {"vxlan": "VXLAN", "geneve": "Geneve"}[self.kind]

    def __str__(self) -> str:
        return self.title + ("" if self.mtu is None else f", MTU {self.mtu}") + (", IPv6" if self.ipv6 else "")


@dataclass(frozen=True, slots=True)
class Arm:
    """A VPN with its options under a name of its own.

    `same_as`: the arm of which it is the twin (A/A).
    `normalised`: its overlay interface gets the inner MTU and queue of all normalised arms; otherwise it is as shipped.
    `underlay`: which of the nodes' addresses the VPN is given.
    `sysctls`: kernel settings of all nodes and routers, by sysctl(8)'s names.
    `inner`: the network on top of its overlay in which workloads run; None: they run in the overlay itself.
    `cascade`: how its tunnels follow each other on a chain; None: it has one tunnel from end to end.
    `behind_gateways`: its tunnel joins the first and the last node that forward; the ends are hosts behind those.
    `programs`: paths of programs that it runs in place of the installed ones, by program name.
    `title`: what it is, in words; "": the VPN's own title.
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

    `shares`: the options that are a share of the link's rate.
    `lengths`: the durations that the study does not state, so they follow from the path (`plan.lengths`).
    """

    name: str
    workload: str
    options: Mapping[str, object] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    lengths: Mapping[str, OfPath] = field(default_factory=dict)

    def over(self, profile: Profile, path: Sequence[Profile] = ()) -> WorkloadUse:
        """Return the use for links of that profile: with bit/s in place of shares, and as long as the path needs.

        An empty `path` means one link of that profile. ValueError if there are shares, and the link has no rate.
        """
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
    smoke: bool = False  # run in its short length, which only shows whether it works
    full: bool = False  # run in its long length, that of the published study it repeats
    watch: tuple[str, ...] = ()  # names of the collectors that run in every trial
    attempts: int = 3  # at most at one trial, if the laboratory spoilt those before
    replacements: int = 0  # most blocks that may be added for those with void trials
    cores: int = 1  # of each node, on every machine
    enough: Enough | None = None  # when to stop adding blocks; None: their number is fixed
    design: Design = ALL  # which of all combinations are measured

    def cells(self) -> list[tuple[Arm, Profile, Topology, WorkloadUse]]:
        """Return the cells that each block measures: arm, profile, topology, workload, in the order of the file."""
        every = product(self.arms, self.profiles, self.topologies, self.workloads)
        return [cell for cell in every if self.design.has([part.name for part in cell])]

    @property
    def unrepeated(self) -> Study:
        """The same study with one attempt at each trial and without replacement blocks."""
        return replace(self, attempts=1, replacements=0)


@dataclass(frozen=True, slots=True)
class Trial:
    """One measured run that a study plans: one arm with one profile, one topology and one workload (a cell).

    It belongs to one block. The VPN is deployed afresh for each trial.
    """

    position: int  # in the order of the run, from 0
    block: int  # from 1
    arm: Arm
    profile: Profile
    topology: Topology
    use: WorkloadUse

    @property
    def id(self) -> str:
        """A name that is unique in the study and can name a folder."""
        return f"{self.block:03d}.{self.arm.name}.{self.profile.name}.{self.topology.name}.{self.use.name}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A study with its trials in the order in which they run."""

    study: Study
    trials: tuple[Trial, ...]

    def of_block(self, number: int) -> Plan:
        """Return a plan with only the trials of that block."""
        return Plan(self.study, tuple(trial for trial in self.trials if trial.block == number))
