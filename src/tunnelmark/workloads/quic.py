"""The workload `quic`: the time to connect, the time to the first byte, and the goodput of QUIC (tunnelmark-quic).

They are measured as qperf measures them. The client downloads, as in the QUIC perf protocol. The server runs on the
source and the client on the target, so that the data flow from source to target as in the other workloads.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError, model_validator

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.metrics import DRIFT, DRIFTS, Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.model.steps import LogMatch
from tunnelmark.plan.fields import DurationText, OfPath
from tunnelmark.units import Duration
from tunnelmark.workloads._printed import ProgramOutput, document
from tunnelmark.workloads.base import Endpoints, Program, Reading, Traffic, Workload, check_warmup

PROGRAM = "tunnelmark-quic"
SERVER, CLIENT = "server", "client"

_PORT = 4433
_BUFFER = 4 * 1024 * 1024
"""The receive buffer to ask for, in bytes: a receiver that waits for its core must not lose packets meanwhile."""

_STEP_S = 0.1  # seconds from one line of figures to the next
_PATIENCE_S = 40.0  # to connect: a connection may need the sixth probe of RFC 9002 (6.2), 31 s after the first
_PATIENCE_EACH_S = 2.0  # more for each connection: QUIC's first timeout (1 s), and two round trips by satellite
_AFTERWARDS_S = 5.0  # seconds that the client waits after the download for packets under way
_GRACE_S = 5.0


class QuicOptions(Options):
    """`handshakes`: the number of connections that are timed before the download, one after the other.

    `connections`: the number of connections that then download at the same time.
    `warmup`: the first part of `duration`, which is not measured, because of QUIC's slow start.
    `gso`: lets the programs hand several datagrams to the kernel in one call (UDP GSO).
    """

    duration: Annotated[DurationText, Field(le=3600), OfPath("transfer")] = Duration(2)
    warmup: Annotated[DurationText, OfPath("transfer")] = Duration(0.3)
    handshakes: Annotated[int, Field(ge=1, le=1000)] = 5
    connections: Annotated[int, Field(ge=1, le=100)] = 1
    gso: bool = True

    @model_validator(mode="after")
    def _warmup_leaves_a_window(self) -> QuicOptions:
        check_warmup(self.warmup, self.duration)
        if self.duration - self.warmup < 2 * _STEP_S:
            raise ValueError(f"should measure for {2 * _STEP_S:g} s or more after its warmup")
        return self


class _Look(ProgramOutput):  # crates/quic/src/report.rs explains all fields
    time: float  # seconds since the download, or its first request, began
    cpu: float  # CPU seconds of the process since it started


class _Arrived(_Look):
    bytes: int


class _Datagrams(ProgramOutput):
    bytes: int
    datagrams: int
    calls: int


class _Left(_Look):
    sent: int
    lost: int
    cwnd: float  # bytes
    rtt_ms: float
    udp_sent: _Datagrams


class _Handshake(ProgramOutput):
    connect_ms: float
    first_byte_ms: float


class _Connection(ProgramOutput):
    mtu: int


class _Client(ProgramOutput):
    handshakes: Annotated[tuple[_Handshake, ...], Field(min_length=1)]
    arrived: tuple[_Arrived, ...]


class _Server(ProgramOutput):
    congestion_control: tuple[str, ...]
    left: tuple[_Left, ...]
    connections: tuple[_Connection, ...]


class _Failed(ProgramOutput):
    error: str


_Report = TypeVar("_Report", _Client, _Server)
_Looks = TypeVar("_Looks", _Arrived, _Left)


def _traffic(ends: Endpoints, options: QuicOptions) -> Traffic:
    ready_timeout = _PATIENCE_S + _PATIENCE_EACH_S * (options.handshakes + options.connections)
    address = f"[{ends.source_address}]" if ends.source_address.version == 6 else str(ends.source_address)
    common = (
        *("--receive-buffer", str(min(_BUFFER, ends.socket_buffer))),
        *("--gso", "true" if options.gso else "false"),
    )
    server = Program(
        name=SERVER,
        node=ends.source,
        argv=(PROGRAM, "server", "--listen", f"{address}:{_PORT}", *common),
        ready=LogMatch(r"^listening on "),
        long_running=True,
    )
    client = Program(
        name=CLIENT,
        node=ends.target,
        argv=(
            *(PROGRAM, "client", "--connect", f"{address}:{_PORT}", "--duration", f"{float(options.duration):g}"),
            *("--handshakes", str(options.handshakes), "--connections", str(options.connections)),
            *("--patience", f"{ready_timeout:g}", *common),
        ),
    )
    return Traffic(
        servers=(server,),
        client=client,
        window=options.duration - options.warmup,
        warmup=float(options.warmup),
        timeout=ready_timeout + options.duration + _AFTERWARDS_S + _GRACE_S,
    )


def _read(outputs: dict[str, str], options: QuicOptions) -> Reading:
    _raise_if_failed(outputs.get(CLIENT, ""))
    client, server = _report(outputs, CLIENT, _Client), _report(outputs, SERVER, _Server)
    if not server.connections:
        if any(look.bytes for look in client.arrived):
            raise OutputUnreadable(
                f"{PROGRAM}'s {SERVER} says that it served no download, and its client that it got one",
                hint="is the program as new as this reader? run the set-up again",
            )
        raise WorkloadFailed(  # the client connected, and its request was lost again and again
            f"the request for the download did not reach the server within {options.duration:g} s",
            hint="see the VPN's logs: the tunnel loses packets, or stalls, right after a connection is there",
        )
    arrived = _inside(client.arrived, options, CLIENT)
    left = _inside(server.left, options, SERVER)
    window = arrived[-1].time - arrived[0].time
    received = arrived[-1].bytes - arrived[0].bytes
    if received <= 0:
        raise WorkloadFailed(
            f"not a byte arrived in {window:.1f} s", hint="see the VPN's logs: the download stalled after its start"
        )
    calls = left[-1].udp_sent.calls - left[0].udp_sent.calls
    datagrams = left[-1].udp_sent.datagrams - left[0].udp_sent.datagrams
    connects = [one.connect_ms for one in client.handshakes]
    samples = [
        Sample("goodput", received * 8 / window),
        Sample("handshake", median(connects)),
        Sample("handshake_max", max(connects)),
        Sample("first_byte", median(one.first_byte_ms for one in client.handshakes)),
        Sample("sent", float(left[-1].sent - left[0].sent)),
        Sample("lost", float(left[-1].lost - left[0].lost)),
        Sample("rtt", fmean(one.rtt_ms for one in left[1:])),
        Sample("cwnd", fmean(one.cwnd for one in left[1:]) / 1024),
        Sample("mtu", float(min(one.mtu for one in server.connections))),
        Sample("cpu_server", (left[-1].cpu - left[0].cpu) / (received / 1e9)),
        Sample("cpu_client", (arrived[-1].cpu - arrived[0].cpu) / (received / 1e9)),
    ]
    if len(arrived) > 2:
        samples.append(Sample(DRIFT, _drift(arrived)))
    if calls:
        samples.append(Sample("datagrams_per_call", datagrams / calls))
    for before, after in pairwise(arrived):
        time = before.time - arrived[0].time
        samples.append(Sample("goodput", (after.bytes - before.bytes) * 8 / (after.time - before.time), time))
    for earlier, later in pairwise(left):
        time = earlier.time - left[0].time
        samples.append(Sample("sent", float(later.sent - earlier.sent), time))
        samples.append(Sample("lost", float(later.lost - earlier.lost), time))
        samples.append(Sample("rtt", later.rtt_ms, time))
        samples.append(Sample("cwnd", later.cwnd / 1024, time))
    return Reading(
        samples=tuple(samples), window=window, warmup=arrived[0].time, congestion_control=server.congestion_control
    )


def _inside(looks: Sequence[_Looks], options: QuicOptions, name: str) -> tuple[_Looks, ...]:
    """Return the lines of figures from the end of the warm-up to the end of the download, give or take half a step."""
    late = _STEP_S / 2
    inside = tuple(look for look in looks if options.warmup - late <= look.time < options.duration + late)
    if len(inside) < 2 or inside[-1].time - inside[0].time < (options.duration - options.warmup) / 2:
        raise OutputUnreadable(
            f"{PROGRAM}'s {name} printed no byte counts for most of the time from {options.warmup:g} s to {options.duration:g} s",
            hint="see the raw output: it may have had no CPU time",
        )
    return inside


def _raise_if_failed(text: str) -> None:
    """Raise WorkloadFailed if the client reports an error in its JSON."""
    try:
        failed = _Failed.model_validate_json(text)
    except ValidationError:
        return  # it is a report, or `_report` says what is wrong with it
    raise WorkloadFailed(
        f"{PROGRAM}'s client says: {failed.error}",
        hint="see the VPN's logs; QUIC needs datagrams of 1200 bytes to pass, so an inner MTU of 1228 (IPv6: 1248)",
    )


def _report(outputs: dict[str, str], name: str, kind: type[_Report]) -> _Report:
    """Return the report that one side printed. Raises OutputUnreadable if it has another form."""
    hint = "is the program as new as this reader? run the set-up again"
    return document(outputs.get(name, ""), f"{PROGRAM}'s {name}", kind, hint)


def _drift(arrived: Sequence[_Arrived]) -> float:
    """Return how much more goodput the window's second half had than the first, in per cent of their mean."""
    middle = arrived[len(arrived) // 2]
    first, second = (
        (after.bytes - before.bytes) / (after.time - before.time)
        for before, after in ((arrived[0], middle), (middle, arrived[-1]))
    )
    return 200 * (second - first) / (second + first)


WORKLOAD = Workload(
    name="quic",
    title="QUIC download (quinn)",
    serves="web pages and downloads",
    metrics=(
        Metric("goodput", "bit/s", "QUIC goodput at the receiver", "higher", primary=True, fills=0.92),
        Metric("handshake", "ms", "QUIC connection established, median", "lower", feels="delay"),
        Metric("handshake_max", "ms", "QUIC connection established, longest", "lower", feels="longest"),
        Metric("first_byte", "ms", "first byte over a new QUIC connection, median", "lower", feels="delay"),
        Metric("sent", "packets", "QUIC packets sent", "higher"),
        Metric("lost", "packets", "QUIC packets that the sender declared lost", "lower", compare="difference"),
        Metric(
            "rtt", "ms", "mean round-trip time that the sender's QUIC saw, under its own load", "lower", feels="delay"
        ),
        Metric("cwnd", "KiB", "mean congestion window of a connection", "higher"),
        Metric("mtu", "B", "UDP payload that path MTU discovery found, smallest", "higher", feels="counts"),
        Metric("datagrams_per_call", "datagrams", "UDP datagrams in one call to the kernel (GSO)", "higher"),
        Metric("cpu_server", "s/GB", "CPU of the sending program alone", "lower", feels="processor"),
        Metric("cpu_client", "s/GB", "CPU of the receiving program alone", "lower", feels="processor"),
        DRIFTS,
    ),
    traffic=_traffic,
    read=_read,
    programs=(PROGRAM,),
    packages=(),
    options=QuicOptions,
)
