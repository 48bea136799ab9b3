"""What `tunnelmark-probe stream` prints on both ends of a path, as what each direction carried and when it carried nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed

PROGRAM = "tunnelmark-probe"


class StreamReport(BaseModel):
    """What one end of the stream printed; times are microseconds since `start` (ns of CLOCK_MONOTONIC)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    start: int
    interval_ns: Annotated[int, Field(gt=0)]
    sent: Annotated[int, Field(gt=0)]
    latest_us: int
    arrivals: tuple[tuple[int, int, int], ...]  # number, sent, arrived


@dataclass(frozen=True, slots=True, order=True)
class Silence:
    """A time between two arrivals, in seconds; `missing` is how many probes between the two had not arrived by then.

    `length` is what it is longer than the sender left: an interval, or where nothing is missing what the sender says that
    it left, for then a sender that was late is not the path's doing.
    """

    length: float
    begun: float
    ended: float
    missing: int


@dataclass(frozen=True, slots=True)
class StreamWay:
    """One direction; times are seconds of CLOCK_MONOTONIC.

    `begun` is when its sender began; `arrivals` are (number, sent, arrived) in the order in which they arrived, each number once.
    """

    name: str
    begun: float
    interval: float
    sent: int
    arrivals: tuple[tuple[int, float, float], ...]

    @property
    def lost(self) -> int:
        return self.sent - len(self.arrivals)

    @property
    def tail(self) -> float:
        """Seconds of probes at the end of which none arrived."""
        return (self.sent - 1 - max(number for number, _, _ in self.arrivals)) * self.interval

    def silences(self) -> list[Silence]:
        """Every time between two arrivals."""
        found = []
        for (number, sent, arrived), (next_number, next_sent, next_arrived) in pairwise(self.arrivals):
            left = next_sent - sent if next_number == number + 1 else self.interval
            length = next_arrived - arrived - left
            found.append(Silence(length, arrived, next_arrived, next_number - number - 1))
        return found


def read(outputs: Mapping[str, str], name: str) -> StreamReport:
    text = outputs.get(name, "")
    if not text.strip():
        raise OutputUnreadable(f"the {name}'s probe printed nothing", hint="see its stderr in the raw output")
    try:
        return StreamReport.model_validate_json(text)
    except ValidationError as error:
        raise OutputUnreadable(
            f"the {name}'s probe printed what is not understood: {error.errors(include_url=False)[0]['msg']}",
            hint=f"is {PROGRAM} of the same checkout? `make setup` builds it",
        ) from error


def way(name: str, sender: StreamReport, receiver: StreamReport) -> StreamWay:
    start = receiver.start / 1e9
    first: dict[int, tuple[int, float, float]] = {}
    for number, sent, arrived in receiver.arrivals:
        first.setdefault(number, (number, start + sent / 1e6, start + arrived / 1e6))
    if not first:
        raise WorkloadFailed(f"not a probe arrived from {name}", hint="see the VPN's logs: it had answered a ping")
    return StreamWay(name, sender.start / 1e9, sender.interval_ns / 1e9, sender.sent, tuple(first.values()))
