"""Field types for values that people write: quantities as text with a unit, and names.

Plan files (`study_schema`) and the options of workloads both use them, so that a duration is written, and
refused, in the same way everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import PlainSerializer, PlainValidator, StringConstraints

from tunnelmark.units import Duration, Rate, Share, Size

NAME_PATTERN = r"[a-z0-9][a-z0-9.-]*"

NameField = Annotated[str, StringConstraints(strict=True, pattern=f"^{NAME_PATTERN}$")]
JoinedName = Annotated[str, StringConstraints(strict=True, pattern=rf"^{NAME_PATTERN}(\+{NAME_PATTERN})*$")]


def _whole_seconds(text: object) -> Duration:
    """Read a duration; ValueError unless it is a whole number of seconds."""
    duration = Duration.parse(text)
    if not float(duration).is_integer():
        raise ValueError("should be whole seconds such as '2 s': the program that is started takes nothing finer")
    return duration


def _seconds(duration: Duration) -> str:
    """Return the duration as text that `Duration.parse` reads; from a minute on, `str` writes for people only."""
    return f"{float(duration):g} s"


def _rate_or_share(text: object) -> Rate | Share:
    """Read a rate, or a share above zero of the link's rate; ValueError if the text is neither."""
    if isinstance(text, str) and text.strip().endswith("%"):
        if not (share := Share.parse(text)):
            raise ValueError("should be a share above zero of the link's rate, such as '30 %'")
        return share
    return Rate.parse(text)


@dataclass(frozen=True, slots=True)
class OfPath:
    """Marks an option `duration` or `warmup` that follows from the path if a study does not state it (`plan.lengths`).

    `of`: what it must be long enough for: `transfer` (slow start, round trips and the path's cuts), or only the `cuts`.
    `default`: the least value of the option, in seconds.
    """

    of: Literal["transfer", "cuts"]
    default: float = 0.0


RateText = Annotated[Rate, PlainValidator(Rate.parse), PlainSerializer(str)]
OfLink = Annotated[Rate | Share, PlainValidator(_rate_or_share), PlainSerializer(str)]
"""A rate, or a share of the rate of a trial's link. The trial itself gets a rate in bit/s (`WorkloadUse.over`)."""

SizeText = Annotated[Size, PlainValidator(Size.parse), PlainSerializer(str)]
DurationText = Annotated[Duration, PlainValidator(Duration.parse), PlainSerializer(_seconds)]
WholeSeconds = Annotated[Duration, PlainValidator(_whole_seconds), PlainSerializer(_seconds)]
MomentText = Annotated[Duration, PlainValidator(Duration.parse_moment), PlainSerializer(_seconds)]
ShareText = Annotated[Share, PlainValidator(Share.parse), PlainSerializer(str)]
