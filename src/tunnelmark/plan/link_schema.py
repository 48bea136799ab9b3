"""Defines the tables and keys that a profile file may have.

Each field's description completes "should be ..."; `problems` shows it as the hint. Rules about several
fields are checked in `link_rules`. A stage with one figure may be written as that figure: `loss = "1 %"`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator

from tunnelmark import former_names
from tunnelmark.plan.auto import Auto
from tunnelmark.plan.fields import DurationText, MomentText, RateText, ShareText, SizeText
from tunnelmark.plan.impairments import Distribution
from tunnelmark.plan.study_schema import TomlTable
from tunnelmark.units import Rate, Share

HEADER = 14
"""Bytes of a frame's Ethernet header in memory. A link whose rate counts only IP packets has an `overhead` of -14."""

_SHARE = "a share from '0 %' to '100 %', such as '0.5 %'"
_DURATION = "a duration above zero such as '10 ms'"
_MOMENT = "a time from '0 s' on, such as '10 s'"
_LONGER = "a table with `{}`, or that alone as text"


def _alone(key: str) -> Callable[[object], object]:
    """Return a validator that reads a text as a table with it under `key`; any other value stays as it is."""
    return lambda value: {key: value} if isinstance(value, str) else value


def _named_now(former: Mapping[str, str]) -> Callable[[object], object]:
    """Return a validator that replaces a former name by the present one, with a warning; other values stay."""

    def current(value: object) -> object:
        if not isinstance(value, str) or value not in former:
            return value
        logging.getLogger("tunnelmark").warning("%r is called %r now", value, former[value])
        return former[value]

    return current


class ChanceTable(TomlTable):
    """The table `duplication` or `corruption`."""

    probability: ShareText = Field(description=_SHARE)
    correlation: ShareText = Field(default=Share(0), description=_SHARE)


class ReorderingTable(ChanceTable):
    """The table `reordering`."""

    gap: int = Field(default=1, ge=1, description="a whole number from 1 on; 1: every packet may be reordered")


class JitterTable(TomlTable):
    """The table `jitter`."""

    size: DurationText = Field(description=_DURATION)
    distribution: Distribution = Field(default="uniform", description="'uniform', 'normal', 'pareto' or 'paretonormal'")
    correlation: ShareText | None = Field(default=None, description=_SHARE)
    keep_order: bool | None = Field(default=None, description="true or false")
    correlation_time: DurationText | None = Field(default=None, description=_DURATION)
    per: Literal["time", "packet"] | None = Field(default=None, description="'time' or 'packet'")


class LossTable(TomlTable):
    """The table `loss`. `link_rules` checks which keys belong to which kind of loss."""

    kind: Annotated[
        Literal["independent", "bursts", "gilbert-elliott", "four-state", "pattern"],
        BeforeValidator(_named_now(former_names.LOSSES)),
    ] = Field(
        default="independent", description="'independent', 'bursts', 'gilbert-elliott', 'four-state' or 'pattern'"
    )
    probability: ShareText | None = Field(default=None, description=_SHARE)
    correlation: ShareText | None = Field(default=None, description=_SHARE)
    p: ShareText | None = Field(default=None, description=_SHARE)
    r: ShareText | None = Field(default=None, description=_SHARE)
    h: ShareText | None = Field(default=None, description=_SHARE)
    k: ShareText | None = Field(default=None, description=_SHARE)
    p13: ShareText | None = Field(default=None, description=_SHARE)
    p31: ShareText | None = Field(default=None, description=_SHARE)
    p32: ShareText | None = Field(default=None, description=_SHARE)
    p23: ShareText | None = Field(default=None, description=_SHARE)
    p14: ShareText | None = Field(default=None, description=_SHARE)
    burst: DurationText | None = Field(default=None, description=_DURATION)
    every: DurationText | None = Field(default=None, description=_DURATION)
    outside: ShareText | None = Field(default=None, description=_SHARE)
    pattern: str | None = Field(default=None, pattern="^[01]+$", description="a text of 0 (delivered) and 1 (lost)")
    repeat: bool | None = Field(default=None, description="true or false")


class CodelTable(TomlTable):
    """The table `codel`."""

    target: DurationText | None = Field(default=None, description="a duration such as '5 ms'")
    interval: DurationText | None = Field(default=None, description="a duration such as '100 ms'")


class TraceTable(TomlTable):
    """The table `rate_trace`: a rate that was recorded."""

    at_ms: list[int] = Field(
        min_length=1, description="a list of whole milliseconds, ascending, as in a Mahimahi trace"
    )
    bytes: int = Field(default=1514, ge=1, description="the bytes that one opportunity carries, such as 1514")


class BlackoutTable(TomlTable):
    """A table in the list `blackouts`."""

    start: MomentText | None = Field(default=None, description=_MOMENT)
    length: DurationText = Field(description=_DURATION)
    every: DurationText | None = Field(default=None, description=_DURATION)


class StagesTable(TomlTable):
    """The stages that a direction may have at one time: delay, jitter, loss, rate and so on."""

    delay: DurationText | None = Field(default=None, description=_DURATION)
    jitter: Annotated[JitterTable | None, BeforeValidator(_alone("size"))] = Field(
        default=None, description=_LONGER.format("size")
    )
    loss: Annotated[LossTable | None, BeforeValidator(_alone("probability"))] = Field(
        default=None, description=_LONGER.format("probability")
    )
    duplication: Annotated[ChanceTable | None, BeforeValidator(_alone("probability"))] = Field(
        default=None, description=_LONGER.format("probability")
    )
    corruption: Annotated[ChanceTable | None, BeforeValidator(_alone("probability"))] = Field(
        default=None, description=_LONGER.format("probability")
    )
    reordering: Annotated[ReorderingTable | None, BeforeValidator(_alone("probability"))] = Field(
        default=None, description=_LONGER.format("probability")
    )
    rate: RateText | None = Field(default=None, description="a rate above zero such as '100 Mbit/s'")
    rate_trace: TraceTable | None = Field(default=None, description="a table with `at_ms`")
    queue: SizeText | None = Field(default=None, description="a size above zero such as '512 KiB'")
    queue_packets: int | None = Field(default=None, ge=1, description="a whole number of packets from 1 on")
    codel: CodelTable | None = Field(default=None, description="a table, empty for RFC 8289's 5 ms and 100 ms")
    overhead: int | None = Field(
        default=None, ge=-HEADER, description=f"whole bytes that are added to each packet's length, -{HEADER} or more"
    )


class StepTable(TomlTable):
    """A table in the list `steps` of `schedule`: which stages of a direction change at the time `at`.

    From then on, the stages in `set` replace those of the same name, and those in `clear` do not happen. `down`: true
    cuts the direction until a step says false; None changes nothing. `at` counts from the schedule's beginning.
    """

    at: MomentText = Field(description=_MOMENT)
    set: StagesTable | None = Field(default=None, description="a table of stages that are replaced")
    clear: list[str] = Field(default_factory=list, description='a list of stages such as ["loss", "rate"]')
    down: bool | None = Field(default=None, description="true or false")


class ScheduleTable(TomlTable):
    """The table `schedule`: stages that change with time."""

    steps: list[StepTable] = Field(min_length=1, description="a list of tables with `at`")
    repeat: DurationText | None = Field(default=None, description=_DURATION)


class DirectionTable(StagesTable):
    """The table `[profile.forward]` or `[profile.back]`. Unlike in a schedule, the rate may be `auto` here."""

    rate: Annotated[Rate | Auto, PlainValidator(Auto.parse)] | None = Field(  # type: ignore[assignment]
        default=None, description="a rate above zero such as '100 Mbit/s', 'auto', or 'auto, at most 1 Gbit/s'"
    )
    limit: int | None = Field(default=None, ge=1, description="a whole number of packets from 1 on, such as 1000")
    propagation: DurationText | None = Field(default=None, description=_DURATION)
    blackouts: list[BlackoutTable] | None = Field(default=None, description="a list of tables with start and length")
    schedule: ScheduleTable | None = Field(default=None, description="a table with `steps`")


class ProfileTable(DirectionTable):
    """The table `[profile]`. Its stages (delay, loss, rate and so on) apply to both directions of the link.

    `[profile.forward]` and `[profile.back]` apply to one direction. A stage that has one value here and another one
    there is refused when the profile is read (PlanError).
    """

    title: str = Field(description="one line of text for people", min_length=1)
    source: str = Field(
        description='a line on where the figures come from, such as "measured at home in May 2026"', min_length=1
    )
    model: Literal["stated", "netem"] | None = Field(default=None, description="'stated' or 'netem'")
    unit: Literal["wire", "gso"] | None = Field(default=None, description="'wire' or 'gso'")
    backend: Annotated[
        Literal["auto", "emulator", "shaper", "netem"] | None, BeforeValidator(_named_now(former_names.BACKENDS))
    ] = Field(default=None, description="'auto', 'emulator', 'shaper' or 'netem'")
    place: Literal["middle", "sender"] | None = Field(default=None, description="'middle' or 'sender'")
    card: Literal["offloads", "none"] | None = Field(default=None, description="'offloads' or 'none'")
    forward: DirectionTable | None = Field(
        default=None, description="a table of what holds for packets that leave the link's first node"
    )
    back: DirectionTable | None = Field(
        default=None, description="a table of what holds for packets to the link's first node"
    )


class ProfileFile(TomlTable):
    """A profile file; the file's name is the profile's."""

    profile: ProfileTable = Field(description="a table [profile] with title and source")
