"""Starts the two ends of iperf3, and reads the measuring window from its JSON; all iperf3 workloads share it.

It relies on these facts about iperf3 3.12, each seen in a run (see tests/unit/workloads/outputs):
with -J a client that cannot connect ends with exit code 0 and a top-level `error`; -t and -O take whole
seconds only, so the warm-up is cut off here by leaving out 0.1-second intervals; the server's last interval
may last only a fraction of a millisecond.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, Field

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.steps import TcpPort
from tunnelmark.units import Duration
from tunnelmark.workloads._printed import ProgramOutput, document
from tunnelmark.workloads.base import Endpoints, Program, Traffic

PROGRAM, PACKAGE = "iperf3", "iperf3"
SERVER, CLIENT = "server", "client"

PORT = 5201
_STEP = "0.1"  # seconds from one interval to the next
_CONNECT_MS = 3000  # for the control connection; the overlay has just answered a ping
_IDLE_S = 5  # after this time without a client a server ends by itself; no client tries for longer
_GRACE_S = 10.0  # seconds that connecting, draining queues and exchanging results may take together
_OVERDUE_S = 5.0  # a silence this much longer than the test is an error; within the grace, so both sides say why
_LONGEST_S = 86400.0  # seconds: iperf3 accepts no longer timeout, and no longer test


class Span(ProgramOutput):
    """One interval of one stream; `start` and `end` are seconds since the test began on that side."""

    start: float
    end: float
    seconds: float


SpanT = TypeVar("SpanT", bound=Span)
EndT = TypeVar("EndT", bound=BaseModel)
ReportT = TypeVar("ReportT", bound=BaseModel)


class IperfInterval(ProgramOutput, Generic[SpanT]):
    """One interval of the test, with its figures for each stream."""

    streams: Annotated[tuple[SpanT, ...], Field(min_length=1)]


class Report(ProgramOutput, Generic[SpanT, EndT]):
    """The JSON report of one side of iperf3: its intervals, and the figures at the end of the test."""

    intervals: tuple[IperfInterval[SpanT], ...]
    end: EndT

    def spans(self, begin: float, end: float) -> tuple[SpanT, ...]:
        """Return the first stream's intervals whose middle lies from `begin` to before `end`, in seconds."""
        return tuple(step[0] for step in self.steps(begin, end))

    def steps(self, begin: float, end: float) -> tuple[tuple[SpanT, ...], ...]:
        """Return all streams of each interval whose middle lies from `begin` to before `end`, in seconds.

        The middle decides because iperf3 ends each interval up to some milliseconds late. It also leaves out
        the very short interval after the last whole one. Raises OutputUnreadable if no interval is left.
        """
        firsts = ((step.streams, step.streams[0]) for step in self.intervals)
        inside = tuple(streams for streams, first in firsts if begin <= (first.start + first.end) / 2 < end)
        if not inside:
            raise OutputUnreadable(
                f"iperf3 printed no interval from {begin:g} s to {end:g} s",
                hint="see the raw output: the run may have been cut short",
            )
        return inside


def silence(duration: float) -> float:
    """Return how many seconds a server waits for data, in a test of `duration` seconds, before it ends with an error.

    The time is longer than the test, because a link that is cut for some seconds is a result and not an error. And it
    is shorter than the trial's timeout, so that iperf3 itself reports a stream that never opened.
    """
    return min(duration + _OVERDUE_S, _LONGEST_S)


def pair(
    source: str,
    target: str,
    address: str,
    options: Iterable[str],
    duration: Duration,
    *,
    port: int = PORT,
    suffix: str = "",
) -> tuple[Program, Program]:
    """Return an iperf3 server on the target, for one test, and a client on the source that sends to `address`.

    `options`: further arguments of the client. `suffix`: the end of both programs' names, so that the pairs of a trial
    have different names.
    """
    server = Program(
        name=SERVER + suffix,
        node=target,
        argv=(
            *(PROGRAM, "--server", "--one-off", "--json", "--interval", _STEP, "--port", str(port)),
            *("--idle-timeout", str(_IDLE_S), "--rcv-timeout", f"{1000 * silence(duration):.0f}"),
        ),
        ready=TcpPort(port),
        ready_timeout=duration + _GRACE_S,  # a client that was cut off may end long before its server
    )
    client = Program(
        name=CLIENT + suffix,
        node=source,
        argv=(
            *(PROGRAM, "--client", address),
            *("--json", "--interval", _STEP, "--port", str(port), "--time", f"{duration:.0f}"),
            *("--connect-timeout", str(_CONNECT_MS), *options),
        ),
    )
    return server, client


def traffic(ends: Endpoints, options: Iterable[str], *, duration: Duration, warmup: Duration) -> Traffic:
    """Return the traffic of one iperf3 pair, from the source to the target."""
    one = pair(ends.source, ends.target, str(ends.target_address), options, duration)
    return together((one,), duration=duration, warmup=warmup)


def together(pairs: Sequence[tuple[Program, Program]], *, duration: Duration, warmup: Duration) -> Traffic:
    """Return the traffic of several pairs of server and client at once; the first pair is the one that is measured."""
    return Traffic(
        servers=tuple(server for server, _ in pairs),
        client=pairs[0][1],
        extra_clients=tuple(client for _, client in pairs[1:]),
        window=duration - warmup,
        warmup=float(warmup),
        timeout=duration + _GRACE_S,
    )


def raise_if_failed(outputs: Mapping[str, str]) -> None:
    """Raise WorkloadFailed if either side reports an error in its JSON, whatever its exit code was."""
    errors = []
    for name, text in sorted(outputs.items()):
        try:
            said = json.loads(text)
        except json.JSONDecodeError:
            continue  # `read` says so, unless the other side knows why
        if isinstance(said, dict) and said.get("error"):
            errors.append(f"iperf3's {name} says {said['error']!r}")
    if errors:
        raise WorkloadFailed("; ".join(errors), hint="see the VPN's logs: the overlay had answered a ping before")


def read(outputs: Mapping[str, str], name: str, report: type[ReportT]) -> ReportT:
    """Return the JSON that the program `name` printed, parsed as `report`.

    Raises OutputUnreadable if the program printed nothing, or something of another form.
    """
    hint = "this reader knows iperf3 3.12; compare `iperf3 --version` and the raw output"
    return document(outputs.get(name, ""), f"iperf3's {name}", report, hint)


def window(spans: Iterable[Span]) -> float:
    """Return the seconds that the intervals cover in sum."""
    return sum(span.seconds for span in spans)
