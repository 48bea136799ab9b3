"""What an emulator that is late does to results: freezes it on purpose, and prints TCP goodput and round-trip times beside.

    python bench/lateness_effect.py [ROUNDS [PROFILE ...]]        as root; half a minute a round and profile

In each round a fresh lab carries one TCP stream of 4 s and then 400 pings of 10 ms for every kind of freeze, in turns:
the emulator is stopped (SIGSTOP) for so many milliseconds, again and again, so that it stands still for a given share of
the time, and everything due meanwhile leaves late. The ratio to the unfrozen trial of the same round is what lateness
did; `model/grades.py` takes its bounds from here. A frozen emulator is late as one is whose machine stands still.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import statistics
import sys
import threading
import time
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path

from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology

PROFILES = ("wifi-good+gigabit", "wifi-bad+fast-ethernet", "home-dsl")
FREEZES = ((0.0, 0.0), (0.001, 0.02), (0.003, 0.02), (0.010, 0.02), (0.030, 0.02), (0.010, 0.10), (0.030, 0.10))
"""Seconds of a freeze, and the share of the time that is frozen."""

TCP_SECONDS, PINGS = 4, 400


@dataclass(slots=True)
class Seen:
    """What one trial met: bit/s, round-trip times in ms, and lateness in ms."""

    goodput: float
    p50: float
    p99: float
    late: dict[str, float] = field(default_factory=dict)


class Freezer(threading.Thread):
    """Stops a process for `length` seconds again and again, `share` of the time, until it is told to end."""

    def __init__(self, pid: int, length: float, share: float) -> None:
        super().__init__(daemon=True)
        self._pid, self._length, self._share = pid, length, share
        self._over = threading.Event()

    def run(self) -> None:
        while self._length and not self._over.wait(self._length / self._share - self._length):
            os.kill(self._pid, signal.SIGSTOP)
            time.sleep(self._length)
            os.kill(self._pid, signal.SIGCONT)

    def end(self) -> None:
        self._over.set()
        self.join()


def emulator_of(lab: Lab) -> int:
    """The process that carries the lab's only link, in this machine's numbering."""
    first = lab.middle.pid
    for child in Path(f"/proc/{first}/task/{first}/children").read_text().split():
        if "tunnelmark-emulator" in Path(f"/proc/{child}/cmdline").read_text():
            return int(child)
    raise SystemExit("no emulator carries this link: name a profile with a delay")


async def measure(labs: LabClient, profile_name: str, freeze: tuple[float, float], seed: int) -> Seen:
    files = Files.standard()
    topology, profile = load_topology("pair", files), load_profile(profile_name, files)
    async with labs.lab(topology, profile, seed=seed) as lab:
        a, b = lab.nodes["a"], lab.nodes["b"]
        to = str(lab.address("b"))
        server = await b.spawn(["iperf3", "-s", "-1"])
        await b.until({"kind": "tcp-port", "port": 5201}, 10)
        await lab.zero()
        freezer = Freezer(emulator_of(lab), *freeze)
        freezer.start()
        try:
            done = await a.run(["iperf3", "-c", to, "-t", str(TCP_SECONDS), "-O", "1", "-J"], timeout=60)
            pinged = await a.run(["ping", "-n", "-i", "0.01", "-c", str(PINGS), to], timeout=60)
        finally:
            freezer.end()
        await server.wait()
        ways = [way["lateness_us"] for report in await lab.link_reports() for way in report["directions"]]
    times = sorted(float(found) for found in re.findall(r"time=([\d.]+) ms", pinged.stdout))
    return Seen(
        json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"],
        statistics.median(times),
        times[int(0.99 * len(times))],
        {what: max(way[what] for way in ways) / 1e3 for what in ("p50", "p99", "max")},
    )


async def main(rounds: int, profiles: list[str]) -> None:
    async with LabClient() as labs:
        for profile in profiles:
            found: dict[tuple[float, float], list[Seen]] = {freeze: [] for freeze in FREEZES}
            for number in range(rounds):
                turn = number % len(FREEZES)
                for freeze in FREEZES[turn:] + FREEZES[:turn]:
                    while not (seen_once := await measure(labs, profile, freeze, number)).goodput:
                        print("iperf3 told no goodput, once more", flush=True)
                    found[freeze].append(seen_once)
            print(
                f"\n{profile}, {rounds} rounds; ratios to the unfrozen trial of the round, geometric means (least to most)"
            )
            print(f"{'frozen':<16}{'late p50, p99, max (ms)':>28}{'goodput':>24}{'rtt median':>24}{'rtt p99':>24}")
            for freeze, seen in found.items():
                late = ", ".join(
                    f"{statistics.median(one.late[what] for one in seen):.2f}" for what in ("p50", "p99", "max")
                )
                cells = ""
                for what in ("goodput", "p50", "p99"):
                    ratios = [
                        getattr(one, what) / getattr(base, what)
                        for one, base in zip(seen, found[FREEZES[0]], strict=True)
                    ]
                    middle = exp(statistics.fmean(map(log, ratios)))
                    cells += f"{middle:>10.3f} ({min(ratios):.2f} to {max(ratios):.2f})"
                print(f"{1e3 * freeze[0]:>3g} ms, {100 * freeze[1]:>2g} %   {late:>28}{cells}", flush=True)


if __name__ == "__main__":
    asked = sys.argv[1:]
    asyncio.run(main(int(asked[0]) if asked else 6, asked[1:] or list(PROFILES)))
