"""How large TCP's congestion window is when it loses a packet over netem's delay, against netem's queue of 1,000 packets.

    python bench/window_at_loss.py RESULTS...        # runs with profiles such as edge-delay-250+gigabit, or a table of their values (CSV)
    python bench/window_at_loss.py knb FOLDER...     # the authors' own logs: results-raw/*/* of korvoj/vpn-performance

What is delayed waits in netem's queue, which holds `limit` packets, 1,000 unless it is told otherwise (tc-netem(8)). If that queue bounds a stream, it loses
packets whenever about so many are on their way, whatever carries it and however long the delay is. The window is that of the interval before one with a
retransmission, in segments of the path's MSS. The first five seconds of the authors' streams are left out, in which slow start goes beyond what the queue
holds; ours leave their warm-up out by themselves.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

from tunnelmark.analyse.attempts import chosen
from tunnelmark.analyse.link_gate import voided
from tunnelmark.record.store import load

PROFILE = re.compile(r"edge-delay-\d+")
LOG = re.compile(r"delay(\d+)ms/logs/\d+/knb-client-tcp-p2p-\d+\.log$")
INTERVAL = re.compile(r"^\[ *\d+\] +[\d.]+-[\d.]+ +sec .*bits/sec +(\d+) +([\d.]+) ([KM]?)Bytes *$", re.MULTILINE)
UNIT = {"": 1, "K": 1 << 10, "M": 1 << 20}
HEADERS = 52  # bytes of IPv4 and TCP with timestamps, which the inner MTU holds besides the payload
SLOW_START = 5  # seconds

COLUMNS = ("link", "arm", "largest", "before_a_loss")


@dataclass(frozen=True)
class Stream:
    """A stream over a link with a delay: its largest window, and those of the intervals before one with a retransmission, in segments."""

    link: str
    arm: str
    largest: float
    before: tuple[float, ...]

    @classmethod
    def of(cls, link: str, arm: str, steps: Sequence[tuple[float, float]]) -> Stream:
        """Return what the intervals show; each has the segments that were sent again, and the window."""
        before = tuple(window for (_, window), (again, _) in pairwise(steps) if again)
        return cls(link, arm, max(window for _, window in steps), before)


def main() -> None:
    """Print the window before a loss for each link and arm, or with `--csv` the values of each stream."""
    words = [word for word in sys.argv[1:] if word != "--csv"]
    read = _authors if words[:1] == ["knb"] else _ours
    streams = [one for word in words[read is _authors :] for one in read(Path(word))]
    if "--csv" in sys.argv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in streams:
            writer.writerow((one.link, one.arm, f"{one.largest:.0f}", " ".join(f"{each:.0f}" for each in one.before)))
        return
    print(
        "| link | arm | streams | with a loss | window before a loss: median (quartiles) | largest, median of streams |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for link, arm in sorted({(one.link, one.arm) for one in streams}, key=_order):
        print(_line(link, arm, [one for one in streams if (one.link, one.arm) == (link, arm)]))


def _order(cell: tuple[str, str]) -> tuple[int, str, str]:
    return int(re.findall(r"\d+", cell[0])[0]), *cell


def _line(link: str, arm: str, streams: Sequence[Stream]) -> str:
    windows = [window for one in streams for window in one.before]
    ends = quantiles(windows, n=4) if len(windows) > 1 else ()
    shown = f"{median(windows):.0f}" if windows else "none"
    spread = f" ({ends[0]:.0f} to {ends[2]:.0f})" if ends else ""
    largest = median(one.largest for one in streams)
    return f"| {link} | {arm} | {len(streams)} | {sum(bool(one.before) for one in streams)} | {shown}{spread} | {largest:.0f} |"


def _ours(place: Path) -> Iterator[Stream]:
    """The streams of a run of ours, or of a table of their values."""
    if place.suffix == ".csv":
        with place.open() as file:
            for row in csv.DictReader(file):
                before = tuple(map(float, row["before_a_loss"].split()))
                yield Stream(row["link"], row["arm"], float(row["largest"]), before)
        return
    for trial in chosen(voided(load(place)).trials):
        if not PROFILE.match(trial.profile) or trial.workload != "tcp" or trial.outcome != "ok":
            continue
        mss = next(one.value for one in trial.samples if one.metric == "mss")
        again, windows = (
            {one.time: one.value for one in trial.samples if one.metric == name and one.time is not None}
            for name in ("retransmits", "cwnd")
        )
        yield Stream.of(
            trial.profile,
            trial.arm,
            [(again[time], 1024 * windows[time] / mss) for time in sorted(again.keys() & windows.keys())],
        )


def _authors(place: Path) -> Iterator[Stream]:
    """The streams of an arm's folder. Its name has the inner MTU where there are two, as of the bare link."""
    mtu = int((re.findall(r"mtu(\d+)$", place.name) or ["1230"])[0])
    for file in sorted(place.rglob("*.log")):
        if found := LOG.search(file.as_posix()):
            steps = [
                (float(again), float(size) * UNIT[unit] / (mtu - HEADERS))
                for again, size, unit in INTERVAL.findall(file.read_text(errors="replace"))
            ]
            yield Stream.of(f"{found[1]} ms", place.name, steps[SLOW_START:])


if __name__ == "__main__":
    main()
