"""The workload `mtu`: the largest inner packet that passes whole, what happens to larger ones, and TCP goodput by size.

`tunnelmark-probe mtu` finds the largest size by sending packets of several sizes, all with the don't-fragment bit set.
Then iperf3 sends TCP streams one after the other: the first with the segment size that TCP itself chooses, then one for
each of `sizes`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.model.steps import TcpPort, UdpPort
from tunnelmark.plan.fields import DurationText, OfPath, WholeSeconds
from tunnelmark.units import Duration
from tunnelmark.workloads import _iperf3
from tunnelmark.workloads._printed import FormT, ProgramOutput, understood
from tunnelmark.workloads.base import Endpoints, Program, Reading, Traffic, Workload, check_warmup

PROGRAM = "tunnelmark-probe"
CLIENT, ANSWERS = "client", "answers"

_PORT = 5211  # for the search
_TCP_PORT = 5212  # for the first stream; each further stream has the next port
_TCP_HEADER = 20  # bytes, without options: the MSS counts neither these nor the IP header
_SEARCH_S = (
    30.0  # seconds that the search takes at most: 16 sizes of 0.5 s each (by satellite 1.5 s), then a second check
)
_CONNECT_S = 3.0  # seconds that iperf3 may take to reach its server
_PRINTS_S = 2.0  # seconds in which a server prints its report; SIGTERM meanwhile would add an error or a second report
_GRACE_S = 10.0  # more seconds: to start, to drain queues, to exchange results


class MtuOptions(Options):
    """`sizes` are sizes of inner IP packets in bytes. For each, one TCP stream sends no larger packets for `duration`.

    The `warmup` at its begin is not measured. If `duration` or `warmup` is not set, it is as long as the link requires
    (`plan.lengths`), and at least as long as its default.
    """

    sizes: Annotated[
        tuple[
            Annotated[int, Field(ge=576, le=9000)], ...
        ],  # RFC 791: every host takes 576; iperf3 knows no MSS above 9216
        Field(strict=False),
    ] = (576, 1000)
    duration: Annotated[WholeSeconds, OfPath("transfer")] = Duration(1)
    warmup: Annotated[DurationText, OfPath("transfer")] = Duration(0.3)

    @model_validator(mode="after")
    def _can_be_told_apart(self) -> MtuOptions:
        if len(set(self.sizes)) < len(self.sizes):
            raise ValueError("should name each of its sizes once")
        check_warmup(self.warmup, self.duration)
        return self


class _Found(ProgramOutput):
    """The result of the search, as the probe prints it; sizes are those of inner IP packets in bytes."""

    mtu: int
    interface: int
    above: Literal["local", "icmp", "silent"]


class _Begin(ProgramOutput):
    tcp_mss_default: int  # payload bytes of a segment without TCP options; read once it is connected


class _Client(ProgramOutput):
    start: _Begin


class _Received(_iperf3.Span):
    bytes: int


class _Congestion(ProgramOutput):
    receiver_tcp_congestion: str


def _server(size: int | None) -> str:
    return "server" if size is None else f"server_{size}"


def _suffix(size: int | None) -> str:
    return "" if size is None else f"_{size}"


def _runs(options: MtuOptions) -> tuple[int | None, ...]:
    """Return the sizes of the streams in order; None means the size that TCP itself chooses."""
    return None, *options.sizes


def _traffic(ends: Endpoints, options: MtuOptions) -> Traffic:
    six = ends.target_address.version == 6
    answers = f"[{ends.target_address}]:{_PORT}" if six else f"{ends.target_address}:{_PORT}"
    seconds = float(options.duration) * len(_runs(options))
    # Each stream may stall from its begin on, as in a black hole. The next one begins when its server gives up.
    silence = _iperf3.silence(options.duration)
    timeout = _SEARCH_S + silence * len(_runs(options)) + _GRACE_S
    servers = [Program(ANSWERS, ends.target, (PROGRAM, "mtu", "--listen", answers), UdpPort(_PORT), long_running=True)]
    clients = [(PROGRAM, "mtu", "--to", answers)]
    for place, size in enumerate(_runs(options)):
        port = _TCP_PORT + place
        server = (_iperf3.PROGRAM, "--server", "--one-off", "--json", "--interval", "0.1", "--port", str(port))
        # Servers wait from the trial's begin on, and get SIGTERM if no client came.
        waits = ("--idle-timeout", f"{timeout:.0f}", "--rcv-timeout", f"{silence * 1000:.0f}")
        words = (*server, *waits)
        servers.append(Program(_server(size), ends.target, words, TcpPort(port), long_running=True, grace=_PRINTS_S))
        client = (_iperf3.PROGRAM, "--client", str(ends.target_address), "--json", "--port", str(port))
        how = ("--time", f"{options.duration:.0f}", "--connect-timeout", f"{_CONNECT_S * 1000:.0f}")
        held = () if size is None else ("--set-mss", str(size - (40 if six else 20) - _TCP_HEADER))
        clients.append((*client, *how, "--congestion", "cubic", *held))
    return Traffic(
        servers=tuple(servers),
        client=Program(CLIENT, ends.source, ("sh", "-c", " && ".join(shlex.join(words) for words in clients))),
        window=seconds,
        warmup=1.0,  # the search, mostly
        timeout=timeout,
    )


def _read(outputs: dict[str, str], options: MtuOptions) -> Reading:
    found, *clients = _documents(outputs.get(CLIENT, ""), 1 + len(_runs(options)))
    search = _as(_Found, found)
    black_hole = search.above == "silent"
    samples = [
        Sample("mtu", float(search.mtu)),
        Sample("black_hole", float(black_hole)),
        Sample("interface", float(search.interface)),
    ]
    window, used = 0.0, []
    for size, client in zip(_runs(options), clients, strict=True):
        if error := client.get("error"):
            if not black_hole:
                raise WorkloadFailed(f"iperf3{_held(size)} says {error!r}", hint="see the VPN's logs")
            samples.append(Sample(f"goodput{_suffix(size)}", 0.0))  # a black hole lets TCP carry nothing
            continue
        report = _iperf3.read(outputs, _server(size), _iperf3.Report[_Received, _Congestion])
        spans = report.spans(options.warmup, options.duration)
        seconds, arrived = _iperf3.window(spans), sum(span.bytes for span in spans)
        if not arrived and not black_hole:
            raise WorkloadFailed(
                f"not a byte arrived in {seconds:.1f} s of the stream{_held(size)}".rstrip(","),
                hint="see the VPN's logs: the stream stalled after its start",
            )
        samples.append(Sample(f"goodput{_suffix(size)}", arrived * 8 / seconds))
        if size is None:
            samples.append(Sample("mss", float(_as(_Client, client).start.tcp_mss_default)))
        window += seconds
        used += [report.end.receiver_tcp_congestion]
    return Reading(tuple(samples), window=window, warmup=1.0, congestion_control=tuple(used))


def _held(size: int | None) -> str:
    return "" if size is None else f", held to packets of {size} bytes,"


def _documents(text: str, count: int) -> list[dict[str, Any]]:
    """Return the client's JSON objects. WorkloadFailed if there are none, OutputUnreadable if they are not `count`."""
    found: list[dict[str, Any]] = []
    decoder, place = json.JSONDecoder(), 0
    try:
        while rest := text[place:].lstrip():
            one, length = decoder.raw_decode(rest)
            found.append(one)
            place = len(text) - len(rest) + length
    except json.JSONDecodeError as error:
        raise OutputUnreadable(f"the client printed invalid JSON: {error}", hint=_SEE) from error
    if not found:
        raise WorkloadFailed("the search for the largest packet found none", hint=_SEE)
    if len(found) != count or not all(isinstance(one, Mapping) for one in found):
        raise OutputUnreadable(f"the client printed {len(found)} of {count} results", hint=_SEE)
    return found


_SEE = "see the client's output and stderr in the raw output"


def _as(model: type[FormT], said: Mapping[str, Any]) -> FormT:
    with understood("the client printed JSON", _SEE):
        return model.model_validate(said)


def _metrics(options: MtuOptions) -> tuple[Metric, ...]:
    return (
        Metric("mtu", "B", "largest inner packet that passes whole", "higher", primary=True, feels="counts"),
        Metric(
            "black_hole",
            "",
            "larger packets vanish without a word (1: yes)",
            "lower",
            compare="difference",
            feels="counts",
        ),
        Metric("interface", "B", "largest packet that the overlay's interface takes", "higher", feels="counts"),
        Metric("mss", "B", "payload of a TCP segment, as TCP finds it", "higher", feels="counts"),
        Metric("goodput", "bit/s", "TCP goodput", "higher"),
        *(
            Metric(f"goodput_{size}", "bit/s", f"TCP goodput in packets of at most {size} bytes", "higher")
            for size in options.sizes
        ),
    )


WORKLOAD = Workload(
    name="mtu",
    title="Largest packet, and goodput by size",
    metrics=_metrics(MtuOptions()),
    traffic=_traffic,
    read=_read,
    programs=(PROGRAM, _iperf3.PROGRAM, "sh"),
    packages=(_iperf3.PACKAGE,),
    options=MtuOptions,
    metrics_of=_metrics,
)
