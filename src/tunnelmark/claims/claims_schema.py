"""Defines the format of a file of claims. Each field's description completes "should be ..."."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tunnelmark.claims.originals import TOPICS, Machine, Topic
from tunnelmark.claims.run_statistics import OF_ARM, SECONDS, SHARES, SPREADS, Statistic
from tunnelmark.plan.fields import JoinedName, NameField
from tunnelmark.plan.study_schema import TomlTable

_TEXT = "one line of text for people"
_RANGE = "a number"

TextLine = Annotated[str, Field(min_length=1)]


class SourceTable(TomlTable):
    """The table `[source]`: the publication, and the studies that repeat it."""

    authors: TextLine = Field(description="who published it, such as 'A. Author and B. Author'")
    year: int = Field(ge=1900, le=2100, description="the year in which it was published")
    title: TextLine = Field(description="its title")
    form: str = Field(default="", description="what it is and where it was published, such as 'poster'")
    study: NameField = Field(description="the name of the study that repeats it, such as 'mesh-vpns'")
    also: list[NameField] = Field(
        default=[], description="a list of further studies that repeat parts of it, such as ['mesh-vpns-tuned']"
    )
    within: float = Field(
        default=1.25, gt=1, description="the factor, above 1, by which a ratio may differ from the printed one"
    )


class SetupTable(TomlTable):
    """The table `[there]`: how the source measured, in those facts that a run also records about itself.

    Texts are "" for what the source does not say.
    """

    hosts: str = Field(default="", description="the machines that it measured on")
    kernel: str = Field(default="", description="their kernel")
    links: str = Field(default="", description="what joined them, and where and by what links were impaired")
    runs: str = Field(default="", description="how often it measured each cell")
    versions: dict[str, TextLine] = Field(default={}, description="a table of the source's arms, each with its version")
    tools: dict[str, TextLine] = Field(
        default={}, description="a table of tools, such as iperf3, each with its version"
    )
    lengths: dict[str, TextLine] = Field(
        default={}, description="a table of the study's workloads, each with how long the source measured"
    )
    free_cores: bool = Field(default=False, description="true where it says that no processor was the limit")
    processors: str = Field(
        default="",
        description="what it says of how busy processors were, where it leaves open whether they were the limit",
    )


class DifferenceTable(TomlTable):
    """A table `[[difference]]`: how a repetition differs from the source, if its own record does not show that."""

    topic: Topic = Field(description="one of " + ", ".join(map(repr, TOPICS)))
    says: TextLine = Field(description="a sentence or two")
    studies: list[NameField] = Field(default=[], description="a list of studies, where it is about those alone")
    workloads: list[NameField] = Field(default=[], description="a list of workloads, where it is about those alone")
    arms: list[str] = Field(default=[], description="a list of the source's arms, where it is about those alone")
    conditions: list[str] = Field(default=[], description="a list of names of a [condition], where it is about those")
    quantities: list[str] = Field(default=[], description="a list of names of a [quantity], where it is about those")
    length: Literal["", "usual", "full"] = Field(
        default="", description="'usual' or 'full', where it is about that length"
    )
    lacks: list[NameField] = Field(default=[], description="a list of workloads, where it is about runs without them")
    machine: list[Machine] = Field(
        default=[],
        description="a list of 'one', 'one core a node' and 'shared cores', where it is about nodes of one machine, that have one core each, or share one",
    )
    makes: Literal["", "lower", "higher"] = Field(
        default="", description="'lower' or 'higher', where it can move the figures that it is about in that way alone"
    )
    decides: str = Field(default="", description="why claims about the figures that it is about cannot be tested")


class QuantityTable(TomlTable):
    """A table `[quantity.NAME]`: a quantity of the source, and the metric of the study that repeats it."""

    title: TextLine = Field(description=_TEXT)
    unit: str = Field(description="the unit in which the source prints it, such as 'Mbit/s'")
    kind: Literal["rate", "time", "share", "count", "size", "ratio"] = Field(
        description="'rate', 'time', 'share', 'count', 'size' or 'ratio'"
    )
    better: Literal["higher", "lower"] = Field(description="'higher' or 'lower'")
    workload: str = Field(default="", description="the name of the workload in the study that measures it")
    metric: str = Field(default="", description="the name of the workload's metric")
    study: NameField | Literal[""] = Field(
        default="", description="the study that has the workload, one of `also`; none: that of the whole source"
    )
    factor: float = Field(default=1.0, gt=0, description="how many of the metric's unit make one of the source's")
    statistic: Statistic | None = Field(
        default=None, description="one of " + ", ".join(map(repr, (*SECONDS, *SPREADS, *SHARES, *OF_ARM[:1])))
    )
    unless_full: bool = Field(
        default=False, description="true where the figure says nothing once the cores of a node are full"
    )
    all_nodes: bool = Field(default=False, description="true where all nodes send and receive at once")
    several_cores: bool = Field(default=False, description="true where a node needs more than one core for it")
    full_only: bool = Field(default=False, description="true where only a run with --full asks what the source asked")
    timers: bool = Field(
        default=False, description="true where a program's own timers set a time, so that it is compared as it is"
    )
    unmeasured: str = Field(default="", description="why no workload of the study measures it")


class PartTable(TomlTable):
    """A table `[part.STUDY]`: what a study that repeats a part of the source names otherwise than the main study."""

    arms: dict[str, NameField] = Field(
        default={}, description="a table of the source's arms, each with its name in that study"
    )
    profiles: dict[str, JoinedName] = Field(
        default={}, description="a table of names of a [condition], each with the profile of that study that repeats it"
    )
    topologies: dict[str, JoinedName] = Field(
        default={}, description="a table of names of a [condition], each with its topology in that study"
    )


class ConditionTable(TomlTable):
    """A table `[condition.NAME]`: a condition of the source, and the profile and topology that repeat it."""

    title: TextLine = Field(description=_TEXT)
    profile: JoinedName | Literal[""] = Field(default="", description="the profile of the study that repeats it")
    topology: JoinedName | Literal[""] = Field(default="", description="the topology, where the study has several")
    impaired: bool = Field(default=False, description="true where loss, delay or jitter of the link holds TCP down")
    workloads: dict[str, NameField] = Field(
        default={}, description="a table of workloads of quantities, each with the one that repeats it here"
    )
    unmeasured: str = Field(default="", description="why the study has no such condition")


class ValuesTable(TomlTable):
    """A table `[[table]]`: values of one quantity as the source prints them, by arm and condition."""

    place: TextLine = Field(description="where the source prints it, such as 'tab tcp_baseline'")
    quantity: str = Field(description="the name of a [quantity]")
    conditions: list[str] = Field(min_length=1, description="a list of names of a [condition], one for each column")
    rows: dict[str, list[float]] = Field(
        description="a table of the source's arms, each with a number for every condition, nan where nothing is printed"
    )


class OverTable(TomlTable):
    """An entry of `over` in a table `[[claim]]`: the cell that a value is compared with.

    A quantity, condition or arm that is not given is that of the value's own cell.
    """

    quantity: str | None = Field(default=None, description="the name of a [quantity]")
    condition: str | None = Field(default=None, description="the name of a [condition]")
    arm: str | None = Field(default=None, description="one of the source's arms")


class ClaimTable(TomlTable):
    """A table `[[claim]]`: one claim, or several of one form, with the test that judges them."""

    id: NameField = Field(description="a name of lower-case letters, digits, dots and dashes")
    place: TextLine = Field(description="where the source says it, such as 'sec Latency'")
    says: TextLine = Field(
        description="a sentence of our own; {arm}, {condition} and {value} are replaced by those of the claim"
    )
    test: Literal["ratio", "difference", "value", "order", "groups", "apart", "feature", "none"] = Field(
        description="'ratio', 'difference', 'value', 'order', 'groups', 'apart', 'feature' or 'none'"
    )
    quantity: str = Field(default="", description="the name of a [quantity]")
    conditions: list[str] = Field(default=[], description="a list of names of a [condition]")
    arms: list[str] = Field(default=[], description="a list of the source's arms")
    over: list[OverTable] = Field(default=[], description='a list such as [{ arm = "Internal" }]')
    within: float | None = Field(default=None, gt=1, description="a factor above 1")
    plus_minus: float | None = Field(default=None, gt=0, description="a number above 0, in the source's unit")
    printed: float | None = Field(
        default=None,
        description="the effect that the source prints, where it prints no values that it could be taken of",
    )
    least: float | None = Field(default=None, description=_RANGE)
    most: float | None = Field(default=None, description=_RANGE)
    together: bool = Field(default=False, description="true where one claim is about all its arms and conditions")
    along: Literal["arms", "conditions", "quantities"] = Field(
        default="arms", description="what an order runs along: 'arms', 'conditions' or 'quantities'"
    )
    quantities: list[str] = Field(default=[], description="a list of names of a [quantity], for an order along them")
    margin: float = Field(
        default=1.05, ge=1, description="a factor: places of an order whose printed values are closer are not compared"
    )
    groups: list[list[str]] = Field(default=[], description="a list of lists of arms, the best group first")
    alone: list[str] = Field(
        default=[],
        description="a list of arms of groups or pairs whose part is a claim of its own, as what decides their figures decides no other's",
    )
    pairs: list[Annotated[tuple[str, str], Field(strict=False)]] = Field(  # TOML knows arrays only
        default=[], description="a list of pairs of arms"
    )
    differ: bool = Field(default=True, description="false where the source could not tell the pairs apart")
    criteria: dict[str, list[str]] = Field(
        default={},
        description="a table of the source's criteria, each with those of the feature matrix that make it up",
    )
    features: dict[str, list[bool | str]] = Field(
        default={},
        description='a table of rows of the matrix, each with true, false, a text, or "" (not compared) for every criterion',
    )
    untestable: str = Field(default="", description="why this laboratory cannot test it")
    usual: str = Field(default="", description="why only a run with --full can test it")
    studies: list[NameField] = Field(
        default=[], description="a list of studies of `also` that can test it although it is `untestable` in others"
    )
    contradicted: str = Field(default="", description="what the source's own figures say against it")


class ConclusionTable(TomlTable):
    """A table `[[conclusion]]`: a conclusion of the source, with the claims that it rests on."""

    says: TextLine = Field(description="a sentence of our own, such as 'WireGuard is the fastest VPN.'")
    place: TextLine = Field(description="where the source says it, such as 'sec Conclusion'")
    claims: list[str] = Field(
        min_length=1, description="a list of ids of claims; 'tcp-share' is also 'tcp-share.wireguard' and the like"
    )


class ClaimsTable(TomlTable):
    """The whole file of claims."""

    source: SourceTable = Field(description="a table [source] with authors, year, title and study")
    there: SetupTable = Field(default=SetupTable(), description="a table [there]")
    difference: list[DifferenceTable] = Field(default=[], description="tables [[difference]]")
    arms: dict[str, str] = Field(description="a table of the source's arms, each with its name in the study")
    absent: dict[str, str] = Field(
        default={}, description="a table of arms that the study does not have, each with the reason"
    )
    other_paths: dict[str, str] = Field(
        default={},
        description="a table of arms whose packets took paths that a lab does not have, each with the reason",
    )
    called: dict[str, TextLine] = Field(
        default={}, description="a table of VPNs of the feature matrix, each with the source's name for it"
    )
    quantity: dict[str, QuantityTable] = Field(description="tables [quantity.NAME]")
    condition: dict[str, ConditionTable] = Field(description="tables [condition.NAME]")
    part: dict[str, PartTable] = Field(default={}, description="tables [part.STUDY], where a study has other names")
    table: list[ValuesTable] = Field(default=[], description="tables [[table]] with the printed values")
    claim: list[ClaimTable] = Field(description="tables [[claim]]")
    conclusion: list[ConclusionTable] = Field(default=[], description="tables [[conclusion]]")
