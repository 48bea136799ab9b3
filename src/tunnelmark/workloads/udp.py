"""The workload `udp`: UDP by iperf3, at a fixed rate or as a flood. It measures goodput, loss and jitter.

The flood repeats published measurements with `iperf3 -u -b 0`: it measures what an overloaded receiver still gets. The
workload `udp-search` measures which rate a VPN can carry.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from statistics import fmean
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, model_validator

from tunnelmark.errors import OutputUnreadable, TrialVoid, WorkloadFailed
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.plan.fields import DurationText, OfLink, OfPath, SizeText, WholeSeconds
from tunnelmark.units import Duration, Rate, Size
from tunnelmark.workloads import _iperf3
from tunnelmark.workloads._rates import in_bits
from tunnelmark.workloads.base import Endpoints, Reading, Traffic, Workload, check_warmup

_BUFFER = 4 * 1024 * 1024
"""Bytes of socket buffer: Linux's default overflowed at 200 Mbit/s on a busy machine, 4 MiB lost nothing."""

_OFFERED = 0.95  # of the asked rate: below that the sender fell short, because of the VPN next to it or of other work


class UdpOptions(Options):
    """The defaults are a rate that slow VPNs deliver on two cores, and datagrams that fit an inner MTU of 1280 bytes.

    `rate`: UDP payload in bit/s, without headers, or a share of the link's rate.
    `length`: payload of a datagram in bytes. The headers of IPv6 and UDP add 48 bytes to that.
    `flood`: the sender ignores `rate` and sends as fast as it can.
    `flood_limit`: the highest rate of a flood over the bare link. "100 %" limits the sender to the link's rate, as a
    network card of that rate would; what is sent into a VPN's interface is not held back by the card.
    `burst`: how many datagrams the sender sends at once; the pauses between bursts keep the rate.
    `fit`: the payload of a datagram is the MSS of iperf3's control connection, and `length` is ignored. That MSS is
    1,178 bytes at an inner MTU of 1230, and 1,398 at 1450.
    """

    rate: OfLink = Rate(100_000_000)
    flood: bool = False
    flood_limit: OfLink | None = None
    length: Annotated[SizeText, Field(ge=16, le=65507)] = Size(1200)
    burst: Annotated[int, Field(ge=1, le=1000)] = 1
    fit: bool = False
    duration: Annotated[WholeSeconds, OfPath("cuts")] = Duration(2)
    warmup: DurationText = Duration(0.2)

    @model_validator(mode="after")
    def _warmup_leaves_a_window(self) -> UdpOptions:
        check_warmup(self.warmup, self.duration)
        return self

    @model_validator(mode="after")
    def _a_flood_has_a_limit_and_no_bursts(self) -> UdpOptions:
        if self.flood_limit is not None and not self.flood:
            raise ValueError("flood_limit is of a flood only: set flood = true, or state a rate")
        if self.burst > 1 and self.flood:
            raise ValueError("burst is of a rate only: a flood has no pauses between datagrams")
        return self


def _signed(count: int) -> int:
    """Return the signed value of a count: iperf3 3.12 prints a negative one as an unsigned integer of 64 bits."""
    return count - (1 << 64) if count >= 1 << 63 else count


class _Received(_iperf3.Span):
    bytes: int
    packets: int  # by sequence number: those that arrived and those that are missing
    # Below zero when a packet that was missed arrives in a later interval.
    lost_packets: Annotated[int, AfterValidator(_signed)]
    jitter_ms: float  # interarrival jitter, smoothed (RFC 3550, 6.4.1)


class _ReceivedInAll(BaseModel):
    packets: int
    out_of_order: int


class _Stream(BaseModel):
    udp: _ReceivedInAll


class _ReceiverEnd(BaseModel):
    streams: Annotated[tuple[_Stream, ...], Field(min_length=1, max_length=1)]


class _TestStart(BaseModel):
    blksize: Annotated[int, Field(ge=1)]  # payload of a datagram


class _Start(BaseModel):
    connected: tuple[dict[str, Any], ...]
    test_start: _TestStart | None = None  # missing where no stream began


class _Begun(BaseModel):
    start: _Start
    error: str = ""


class _SentInAll(BaseModel):
    packets: int


class _SenderEnd(BaseModel):
    sum_sent: _SentInAll


def _traffic(ends: Endpoints, options: UdpOptions) -> Traffic:
    return _iperf3.traffic(
        ends,
        (
            *("--udp", "--bitrate", _pace(options, ends.bare)),
            *(() if options.fit else ("--length", str(int(options.length)))),
            # More than the host allows, and iperf3 refuses to start.
            *("--window", str(min(_BUFFER, ends.socket_buffer))),
        ),
        duration=options.duration,
        warmup=options.warmup,
    )


def _pace(options: UdpOptions, bare: bool) -> str:
    """Return iperf3's `--bitrate`: the rate, and how many datagrams are sent at once. `bare`: over the bare link."""
    return str(_bitrate(options, bare)) + (f"/{options.burst}" if options.burst > 1 else "")


def _bitrate(options: UdpOptions, bare: bool) -> int:
    """Return the rate for iperf3 in bit/s; 0 means as fast as it can. `bare`: over the bare link."""
    if not options.flood:
        return in_bits(options.rate, "udp")
    return in_bits(options.flood_limit, "udp") if bare and options.flood_limit is not None else 0


def _raise_if_never_open(outputs: dict[str, str]) -> None:
    """Raise TrialVoid if the server waited for a stream that the client could not open.

    iperf3 opens a stream with one datagram each way (`iperf_udp_connect`) and repeats neither; the client then waits
    for 30 s.
    """
    with suppress(OutputUnreadable):
        client, server = (_iperf3.read(outputs, name, _Begun) for name in (_iperf3.CLIENT, _iperf3.SERVER))
        if "idle timeout" in server.error and not client.start.connected:
            raise TrialVoid(
                "iperf3 never began: the datagram that opens its stream, or the answer to it, was lost, and it repeats neither",
                hint="expected in about 2 % of trials at 1 % loss. If every trial ends this way, the VPN does not forward UDP. "
                "`udp-search` retries its handshake",
            )


def _began(receiver: _iperf3.Report[_Received, _ReceiverEnd], duration: float) -> float:
    """Return when the client's test began, in seconds since the server's test began.

    The server's clock starts when the server lets the client begin, one round trip before the first datagram arrives.
    So the server's test is longer than `duration` by that time. If the first datagram came even later, the rest of
    the delay has another cause, and is part of the measurement.
    """
    looks = [step.streams[0] for step in receiver.intervals]
    first = next((look.start for look in looks if look.bytes), 0.0)
    return min(first, max(0.0, looks[-1].end - duration)) if looks else 0.0


def _read(outputs: dict[str, str], options: UdpOptions) -> Reading:
    # Only the receiver's JSON has loss by interval, and its `end` cannot be trusted with rates:
    # in 3.12 `end.sum` holds the sender's rate next to the receiver's loss.
    _raise_if_never_open(outputs)
    _iperf3.raise_if_failed(outputs)
    receiver = _iperf3.read(outputs, _iperf3.SERVER, _iperf3.Report[_Received, _ReceiverEnd])
    sender = _iperf3.read(outputs, _iperf3.CLIENT, _iperf3.Report[_iperf3.Span, _SenderEnd])
    begun_at = _began(receiver, options.duration)
    received = receiver.spans(begun_at + options.warmup, begun_at + options.duration)
    window = _iperf3.window(received)
    if not any(span.bytes for span in received):
        raise WorkloadFailed(f"not a datagram arrived in {window:.1f} s", hint="see the VPN's logs")
    in_all = receiver.end.streams[0].udp
    # The receiver counts by sequence number, so datagrams lost after the last that arrived are in no interval.
    after_last = sender.end.sum_sent.packets - in_all.packets
    if after_last < 0:
        raise OutputUnreadable(
            f"iperf3 received {in_all.packets} datagrams of {sender.end.sum_sent.packets} that it sent",
            hint="the VPN may have duplicated datagrams; see the raw output",
        )
    begun = _iperf3.read(outputs, _iperf3.CLIENT, _Begun).start.test_start
    length = begun.blksize if options.fit and begun is not None else int(options.length)
    offered = sender.end.sum_sent.packets * length * 8 / options.duration
    starved, short = "", []
    if not options.flood:
        asked = in_bits(options.rate, "udp")
        short = [Sample("shortfall", 100 * max(0.0, 1 - offered / asked))]
        if offered < _OFFERED * asked:
            starved = f"the sender offered only {offered / 1e6:.0f} of {asked / 1e6:.0f} Mbit/s"
    until_end = receiver.spans(begun_at + options.warmup, float("inf"))
    lost = max(0, sum(span.lost_packets for span in until_end) + after_last)
    expected = sum(span.packets for span in until_end) + after_last
    samples = [
        Sample("delivered", sum(span.bytes for span in received) * 8 / window),
        Sample("lost", 100 * lost / expected),
        Sample("offered", offered),
        Sample("length", float(length)),
        *short,
        Sample("out_of_order", float(in_all.out_of_order)),
        Sample("jitter", fmean(span.jitter_ms for span in received)),
    ]
    for span in received:
        time = span.start - received[0].start
        samples.append(Sample("delivered", span.bytes * 8 / span.seconds, time))
        samples.append(Sample("jitter", span.jitter_ms, time))
        if span.packets > 0:
            samples.append(Sample("lost", 100 * span.lost_packets / span.packets, time))
    return Reading(samples=tuple(samples), window=window, warmup=received[0].start, starved=starved)


_METRICS = (
    Metric("delivered", "bit/s", "UDP payload delivered", "higher", primary=True),
    Metric("lost", "%", "datagrams lost", "lower", compare="difference", primary=True),
    Metric("offered", "bit/s", "UDP payload that the sender sent", "higher"),
    Metric("length", "B", "payload of a datagram", "higher", feels="counts"),
    Metric("shortfall", "%", "rate asked for that the sender did not offer", "lower", compare="difference"),
    # iperf3 counts these for the whole run only, so the warm-up is in it.
    Metric("out_of_order", "packets", "datagrams out of order", "lower", compare="difference"),
    Metric("jitter", "ms", "mean interarrival jitter (RFC 3550)", "lower", feels="tail"),
)


def _metrics(options: UdpOptions) -> tuple[Metric, ...]:
    """Return the metrics. A flood has no shortfall, as it asks for no rate, and is not expected to fill the link.

    What a flood loses is not judged: it says how much faster each sender was than the path, and senders differ.
    """
    if not options.flood:
        return _METRICS
    return tuple(
        replace(metric, fills=0, primary=metric.primary and metric.name != "lost")
        for metric in _METRICS
        if metric.name != "shortfall"
    )


def _offered(options: UdpOptions) -> float | None:
    return None if options.flood else float(in_bits(options.rate, "udp"))


WORKLOAD = Workload(
    name="udp",
    title="UDP at a fixed rate, or a flood (iperf3)",
    serves="calls and video",
    metrics=_METRICS,
    metrics_of=_metrics,
    traffic=_traffic,
    read=_read,
    programs=(_iperf3.PROGRAM,),
    packages=(_iperf3.PACKAGE,),
    options=UdpOptions,
    offered=_offered,
)
