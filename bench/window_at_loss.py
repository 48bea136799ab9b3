"""How large TCP's congestion window is when it loses a packet over netem's delay, against netem's queue of 1,000 packets.

    python bench/window_at_loss.py RESULTS...        # runs with profiles such as edge-delay-250+gigabit
    python bench/window_at_loss.py knb FOLDER...     # the authors' own logs: results-raw/*/* of korvoj/vpn-performance

What is delayed waits in netem's queue, which holds `limit` packets, 1,000 unless it is told otherwise (tc-netem(8)). If that queue bounds a stream, it loses
packets whenever about so many are on their way, whatever carries it and however long the delay is. The window is that of the interval before one with a
retransmission, in segments of the path's MSS. The first five seconds of the authors' streams are left out, in which slow start goes beyond what the queue
holds; ours leave their warm-up out by themselves.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median, quantiles

from tunnelmark.analyse.attempts import chosen
from tunnelmark.analyse.link_gate import voided
from tunnelmark.record.store import load

PROFILE = re.compile(r"edge-delay-(\d+)\+")
LOG = re.compile(r"delay(\d+)ms/logs/\d+/knb-client-tcp-p2p-\d+\.log$")
INTERVAL = re.compile(r"^\[ *\d+\] +[\d.]+-[\d.]+ +sec .*bits/sec +(\d+) +([\d.]+) ([KM]?)Bytes *$", re.MULTILINE)
UNIT = {"": 1, "K": 1 << 10, "M": 1 << 20}
HEADERS = 52  # bytes of IPv4 and TCP with timestamps, which the inner MTU holds besides the payload
SLOW_START = 5  # seconds

Stream = tuple[str, str, list[tuple[float, float]]]
"""The link with its delay, the arm, and for each interval the segments that were sent again and the window in segments."""


def main() -> None:
    """Print for each link and arm the window before a loss."""
    words = sys.argv[1:]
    own = words[:1] != ["knb"]
    streams = [one for word in words[not own :] for one in (_run if own else _authors)(Path(word))]
    print(
        "| link | arm | streams | with a loss | window before a loss: median (quartiles) | largest, median of streams |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for link, arm in sorted({one[:2] for one in streams}, key=lambda one: (_delay(one[0]), *one)):
        print(_line(link, arm, [steps for *where, steps in streams if where == [link, arm]]))


def _delay(link: str) -> int:
    return int(re.findall(r"\d+", link)[0])


def _line(link: str, arm: str, streams: list[list[tuple[float, float]]]) -> str:
    before = [list(_before(steps)) for steps in streams]
    windows = [window for one in before for window in one]
    ends = quantiles(windows, n=4) if len(windows) > 1 else ()
    shown = f"{median(windows):.0f}" if windows else "none"
    spread = f" ({ends[0]:.0f} to {ends[2]:.0f})" if ends else ""
    largest = median(max(window for _, window in steps) for steps in streams)
    return f"| {link} | {arm} | {len(streams)} | {sum(map(bool, before))} | {shown}{spread} | {largest:.0f} |"


def _before(steps: Iterable[tuple[float, float]]) -> Iterator[float]:
    """The windows of intervals that are followed by one with a retransmission."""
    last = None
    for again, window in steps:
        if again and last is not None:
            yield last
        last = window


def _run(place: Path) -> Iterator[Stream]:
    """The streams of a run of ours."""
    for trial in chosen(voided(load(place)).trials):
        if not PROFILE.match(trial.profile) or trial.workload != "tcp" or trial.outcome != "ok":
            continue
        mss = next(one.value for one in trial.samples if one.metric == "mss")
        again, windows = (
            {one.time: one.value for one in trial.samples if one.metric == name and one.time is not None}
            for name in ("retransmits", "cwnd")
        )
        steps = [(again[time], 1024 * windows[time] / mss) for time in sorted(again.keys() & windows.keys())]
        if steps:
            yield trial.profile, trial.arm, steps


def _authors(place: Path) -> Iterator[Stream]:
    """The streams of an arm's folder; its name ends in the MTU where that is not 1230, by which the bare link is told from itself."""
    mtu = int((re.findall(r"mtu(\d+)$", place.name) or ["1230"])[0])
    for file in sorted(place.rglob("*.log")):
        if found := LOG.search(file.as_posix()):
            steps = [
                (float(again), float(size) * UNIT[unit] / (mtu - HEADERS))
                for again, size, unit in INTERVAL.findall(file.read_text(errors="replace"))
            ][SLOW_START:]
            if steps:
                yield f"{found[1]} ms", place.name, steps


if __name__ == "__main__":
    main()
