"""The workload `video`: sends a clip once over RIST at a constant rate.

It measures which packets came in time, and how the clip looked. It relies on these facts about ffmpeg 5.1. When ffmpeg
copies a transport stream, it sends each frame as a burst, and leaves out the empty packets that keep the rate constant.
Its option `muxrate` adds empty packets, and its protocol udp spaces the datagrams evenly. Its muxer's times always
begin at 1.4 s, so the received stream has the clip's own times, and frames are compared by time, even if the first
pictures were lost. Its demuxer `data` passes on the bytes unchanged. While ffmpeg waits for a datagram, it does not end
at the first signal, but at the second.
"""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.model.steps import File, LogMatch, UdpPort
from tunnelmark.plan.fields import DurationText, OfPath, RateText, WholeSeconds
from tunnelmark.units import Duration, Rate
from tunnelmark.workloads import _rist
from tunnelmark.workloads._nginx import at
from tunnelmark.workloads.base import Asset, Endpoints, Program, Reading, Traffic, Workload

DATAGRAM = 7 * 188
"""Bytes of a datagram's payload: seven packets of the transport stream, as usual."""

_CLIENT, _SENDER, _RECEIVER, _RECORDER = "client", "sender", "receiver", "recorder"
_ASSET = "video-clip"
_PORT, _IN_PORT, _OUT_PORT = 40052, 45000, 45001  # RIST's own; on loopback: the sender's input, the receiver's output
_FRAMES_PER_S = 30
_BEGIN_S = 1.4  # seconds: the time of the first picture in a transport stream that ffmpeg wrote
_REST_S = 3 * _rist.STEP_MS / 1e3  # seconds after the last packet has left the buffer until the statistics count it
_GRACE_S = 10.0
_CATCH_UP = 1.1  # times the rate: how fast ffmpeg sends the packets of a frame, and catches up when it is late
_BEHIND = 1.1  # times the clip's length: if sending takes longer, it was not sent at the configured rate
_BEHIND_S = 0.5  # more seconds, to start ffmpeg on a busy machine
_PICTURE_PATIENCE = (20.0, 2.0)  # seconds that decoding and comparing may take: fixed, and per second of the clip
_DECODABLE = 90.0  # %: if at least so many packets came and no picture is seen, the fault is in this program

_TS = ("-f", "mpegts", "-pcr_period", "20")

_SEND = """
clip=$1 rest=$2
shift 2
echo "clip $(stat -c %s "$clip") bytes"
begin=$(date +%s%N)
"$@" </dev/null
code=$?
echo "sent for $((($(date +%s%N) - begin) / 1000000)) ms, code $code"
sleep "$rest"
exit $code
"""

_RECORD = """
cd "$(dirname "$0")" || exit 1
ffmpeg -nostdin -hide_banner -loglevel error -y -f data -i "$1" -map 0 -c copy -flush_packets 1 -f data got.ts &
recorder=$!
trap 'kill -INT $recorder' TERM
wait $recorder
wait $recorder
echo "got $(stat -c %s got.ts) bytes"
[ $# -gt 1 ] || exit 0
ffmpeg -nostdin -hide_banner -nostats -max_error_rate 1 -copyts -i got.ts -i "$2" -filter_complex "$3" -f null - 2>seen.log
echo "compared, code $?"
cat ssim.log
grep -E 'lavfi.freezedetect|SSIM|Error|Invalid|Could not' seen.log
exit 0
"""

_FILTER = (
    # A player holds a picture until the next one comes, and the last one to the end.
    "[0:v]fps={fps},tpad=stop=-1:stop_mode=clone,trim=end={end:g},"
    # Below half a thousandth a picture is the one before: the test picture moves by more in every frame.
    "freezedetect=n=0.0005:d=0.1[seen];"
    "[1:v][seen]ssim=stats_file=ssim.log:shortest=1"
)

_CLIP = re.compile(r"^clip (\d+) bytes$", re.MULTILINE)
_SENT = re.compile(r"^sent for (\d+) ms, code (\d+)$", re.MULTILINE)
_COMPARED = re.compile(r"^compared, code (\d+)$", re.MULTILINE)
_SSIM = re.compile(r"^n:\d+ .*All:([0-9.]+) \(", re.MULTILINE)
_FREEZE = re.compile(r"lavfi\.freezedetect\.freeze_(start|end): ([0-9.]+)$", re.MULTILINE)


def _kept(buffer: Duration) -> Duration:
    if not 0.05 <= buffer <= 10:
        raise ValueError("should be from '50 ms' to '10 s'")
    return buffer


class VideoOptions(Options):
    """`duration` is the clip's length, and `rate` the rate of its whole transport stream.

    `buffer` is how long sender and receiver keep packets, and so the delay at which the viewer watches. A packet that
    has not come by then is lost. Without `picture` the received clip is not compared with the original.
    """

    duration: Annotated[WholeSeconds, Field(ge=2, le=300), OfPath("cuts")] = Duration(6)
    rate: Annotated[RateText, Field(ge=500_000, le=40_000_000)] = Rate(3_300_000)
    buffer: Annotated[DurationText, AfterValidator(_kept)] = Duration(1)
    picture: bool = True


_METRICS = (
    Metric("quality", "%", "packets delivered in time", "higher", compare="difference", primary=True),
    Metric("first_time", "%", "packets delivered without being sent again", "higher", compare="difference"),
    Metric("lost", "packets", "packets never delivered", "lower", compare="difference"),
    Metric("recovered", "packets", "packets delivered because they were sent again", "lower", compare="difference"),
    Metric("late", "packets", "packets that came too late to be played", "lower", compare="difference"),
    Metric("retries", "requests", "requests for missing packets", "lower", compare="difference"),
    Metric("reordered", "packets", "packets out of order", "lower", compare="difference"),
    Metric("behind", "s", "longer than the clip that sending it took", "lower", compare="difference"),
    # Series only:
    Metric("missing", "packets", "packets missing at first, over time", "lower", compare="difference"),
    Metric("given_up", "packets", "packets that the receiver gave up, over time", "lower", compare="difference"),
    Metric("quality_shown", "%", "quality as RIST's tools count it, over time", "higher", compare="difference"),
)

_PICTURE = (
    Metric("ssim", "", "likeness of what was seen to the clip (SSIM)", "higher", compare="difference", primary=True),
    Metric("frozen", "s", "time with a frozen picture, or with none", "lower", compare="difference"),
    Metric("freezes", "freezes", "times that the picture froze", "lower", compare="difference"),
)


def _metrics(options: VideoOptions) -> tuple[Metric, ...]:
    return _METRICS + (_PICTURE if options.picture else ())


def _assets(options: VideoOptions) -> tuple[Asset, ...]:
    """Return the asset: a clip of moving test pictures whose stream has exactly the configured rate all the time.

    The whole picture scrolls; otherwise SSIM would hardly change when the picture freezes.
    """
    video = int(options.rate * 10 / 11)  # the rest is the transport stream's own headers, and filling
    encode = (
        *("ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-f", "lavfi"),
        *("-i", f"testsrc2=size=1280x720:rate={_FRAMES_PER_S},scroll=h=0.005", "-t", f"{options.duration:.0f}"),
        # One thread, for the same bytes everywhere; a key frame a second; no frame refers to a later one.
        *("-c:v", "libx264", "-preset", "veryfast", "-threads", "1", "-bf", "0"),
        *("-g", str(_FRAMES_PER_S), "-keyint_min", str(_FRAMES_PER_S), "-sc_threshold", "0"),
        *("-b:v", str(video), "-minrate", str(video), "-maxrate", str(video), "-bufsize", str(video // 2)),
        *("-x264-params", "nal-hrd=cbr", *_TS, "-muxrate", str(int(options.rate)), "clip.ts"),
    )
    return (Asset(_ASSET, (encode,), ("ffmpeg",), ("ffmpeg",)),)


def _traffic(ends: Endpoints, options: VideoOptions) -> Traffic:
    clip, keep = str(ends.assets[_ASSET] / "clip.ts"), f"buffer={options.buffer * 1e3:.0f}"
    there = at(ends.target_address, _PORT)
    said = ("-S", str(_rist.STEP_MS), "-p", "1", "-v", "6")
    script = File(ends.target, ends.folder / "record.sh", _RECORD)
    end = _BEGIN_S + options.duration + 1.5 / _FRAMES_PER_S
    compare = (clip, _FILTER.format(fps=_FRAMES_PER_S, end=end)) if options.picture else ()
    recorder = Program(
        _RECORDER,
        ends.target,
        ("sh", str(script.path), f"udp://127.0.0.1:{_OUT_PORT}?buffer_size=2000000&fifo_size=100000", *compare),
        ready=UdpPort(_OUT_PORT),
        long_running=True,
        ready_timeout=_PICTURE_PATIENCE[0] + _PICTURE_PATIENCE[1] * options.duration,
    )
    receiver = Program(
        _RECEIVER,
        ends.target,
        (*_rist.SPEAK, _rist.RECEIVER, "-i", f"rist://@{there}?{keep}", "-o", f"udp://127.0.0.1:{_OUT_PORT}", *said),
        ready=UdpPort(_PORT),
        long_running=True,
    )
    sender = Program(
        _SENDER,
        ends.source,
        (
            *_rist.SPEAK,
            _rist.SENDER,
            "-i",
            f"udp://@127.0.0.1:{_IN_PORT}",
            "-o",
            f"rist://{there}?{keep}&cname=tunnelmark",
            *said,
        ),
        ready=LogMatch(_rist.CONNECTED),
        long_running=True,
    )
    rate, rest = int(options.rate), options.buffer + _REST_S
    paced = (
        f"udp://127.0.0.1:{_IN_PORT}?pkt_size={DATAGRAM}&bitrate={_CATCH_UP * rate:.0f}&burst_bits={2 * 8 * DATAGRAM}"
    )
    send = (
        *("ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-re", "-i", clip, "-c", "copy", *_TS),
        *("-muxrate", str(rate), "-flush_packets", "0", paced),
    )
    return Traffic(
        servers=(recorder, receiver, sender),
        client=Program(_CLIENT, ends.source, ("sh", "-c", _SEND, "send", clip, f"{rest:g}", *send)),
        window=float(options.duration),
        warmup=0.0,
        timeout=options.duration + rest + _GRACE_S,
        files=(script,),
    )


def _read(outputs: dict[str, str], options: VideoOptions) -> Reading:
    packets, seconds = _offered(outputs, options)
    received = _rist.received(outputs.get(_RECEIVER, ""))
    if not received.delivered:
        raise WorkloadFailed("not a packet of the clip arrived", hint="see the VPN's logs: it had answered before")
    if received.delivered > packets:
        raise OutputUnreadable(
            f"{_rist.RECEIVER} counted {received.delivered} packets of {packets} that were sent",
            hint="the VPN may have duplicated packets; see the raw output",
        )
    quality = 100 * received.delivered / packets
    samples = [
        Sample("quality", quality),
        Sample("first_time", 100 * received.at_once / packets),
        Sample("lost", float(packets - received.delivered)),
        Sample("recovered", float(received.recovered)),
        Sample("late", float(received.late)),
        Sample("retries", float(received.retries)),
        Sample("reordered", float(received.reordered)),
        Sample("behind", max(0.0, seconds - options.duration)),
    ]
    begin = received.busy[0].time
    for step in received.busy:
        time, came = step.time - begin, step.received + step.missing
        samples.append(Sample("missing", float(step.missing), time))
        samples.append(Sample("given_up", float(step.lost), time))
        if came:
            samples.append(Sample("quality_shown", 100 * step.received / came, time))
    if options.picture:
        samples += _seen(outputs.get(_RECORDER, ""), quality, options)
    starved = ""
    if seconds > _BEHIND * options.duration + _BEHIND_S:
        starved = f"sending the clip took {seconds:.1f} s instead of {options.duration:.0f} s"
    return Reading(samples=tuple(samples), window=seconds, warmup=0.0, starved=starved)


def _offered(outputs: dict[str, str], options: VideoOptions) -> tuple[int, float]:
    """Return the clip's number of packets, and the seconds that sending took. Raises an error unless all were sent."""
    text = outputs.get(_CLIENT, "")
    clip, sent = _CLIP.search(text), _SENT.search(text)
    if clip is None or sent is None:
        raise OutputUnreadable("the client did not say what it sent", hint="see the client's raw output")
    if sent[2] != "0":
        raise WorkloadFailed(
            f"ffmpeg could not send the clip: it ended with code {sent[2]}", hint="its complaint is in the raw output"
        )
    packets, seconds = math.ceil(int(clip[1]) / DATAGRAM), int(sent[1]) / 1e3
    log = outputs.get(_SENDER, "")
    if not _rist.lost_its_peer(log) and (passed_on := _rist.sent(log)) < packets:
        raise WorkloadFailed(
            f"{_rist.SENDER} sent {passed_on} packets, the clip has {packets}",
            hint="it may have ended in the middle: see its raw output",
        )
    return packets, seconds


def _seen(text: str, quality: float, options: VideoOptions) -> list[Sample]:
    """Return the samples of the picture, from the comparison with the clip after the transmission."""
    frames, length = options.duration * _FRAMES_PER_S, float(options.duration)
    compared = _COMPARED.search(text)
    if compared is None:
        raise OutputUnreadable(
            "the recorder did not compare what it got with the clip",
            hint="it may have taken too long on a busy machine; the option picture = false leaves it out",
        )
    likeness = [float(value) for value in _SSIM.findall(text)]
    if not likeness or len(likeness) > frames:
        if quality >= _DECODABLE:
            raise OutputUnreadable(
                f"ffmpeg compared {len(likeness)} of {frames:.0f} frames and ended with code {compared[1]}",
                hint="this reader knows ffmpeg 5.1; see the recorder's raw output",
            )
        return [Sample("ssim", 0.0), Sample("frozen", length), Sample("freezes", 1.0)]  # no picture at any time
    dark = frames - len(likeness)  # frames before the first picture; their likeness counts as 0
    freezes = _freezes(text, _BEGIN_S + length)
    return [
        Sample("ssim", sum(likeness) / frames),
        Sample("frozen", dark / _FRAMES_PER_S + sum(freezes)),
        Sample("freezes", float(len(freezes) + (dark > 0))),
    ]


def _freezes(text: str, end: float) -> list[float]:
    """Return the seconds of each freeze; a freeze without an end lasts until `end`, the end of the clip."""
    lengths, begin = [], None
    for which, moment in (*_FREEZE.findall(text), ("end", str(end))):
        if which == "start":
            begin = float(moment)
        elif begin is not None:
            lengths.append(max(0.0, min(float(moment), end) - begin))
            begin = None
    return lengths


WORKLOAD = Workload(
    name="video",
    title="Live video (RIST)",
    serves="live video",
    metrics=_METRICS + _PICTURE,
    traffic=_traffic,
    read=_read,
    programs=(_rist.SENDER, _rist.RECEIVER, "ffmpeg"),
    packages=(_rist.PACKAGE, "ffmpeg"),
    options=VideoOptions,
    metrics_of=_metrics,
    assets=_assets,
)
