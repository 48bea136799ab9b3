"""tunnelmark-emulator beside the emulators that exist, rattan and Mahimahi: same work, same run. Run it by name, as root:

    .venv/bin/python bench/emulators.py [--rounds 7] [--seconds 3] [--only PART OF A NAME]...

Every way from node a to node b (a bare veth, the emulator on each datapath, the others) is put up afresh for every measurement, in
random order within each round. It prints medians with ranges and judges the bars below them. Exit status: 1 if one is not
met, 2 if one could not be judged, as a program is not here or other work took the machine's CPU. docs/emulator.md says how to
get rattan and Mahimahi.

Nothing touches the host's network: all of it runs in namespaces of its own, which end with it. Like the lab it runs at a
raised priority, as one session (autogroup); on top of that each emulator has what priority it takes by itself.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import _emulators_others as others
from _emulators_verdict import DELAYS_MS, EMULATOR, MAHIMAHI, RATTAN, VETH, Results, table, verdicts
from _emulators_ways import Contender, emulator, veth
from _emulators_work import machine_s, measure

from tunnelmark.lab.emulator import program

INSIDE = "--inside"
QUIET = 0.05  # share of the machine that may be busy with something else
AUTOGROUP = Path("/proc/self/autogroup")
HIGHEST_AUTOGROUP = -15  # as the lab has it


def contenders() -> Iterator[Contender]:
    """All that is here. What is not is said."""
    yield Contender(VETH, "no emulator", veth, (0.0,))
    usage = subprocess.run([program(), "--help"], check=False, capture_output=True, text=True)
    for datapath in ("tap", "port", "xdp"):
        if f"--{datapath} " in usage.stdout + usage.stderr:
            frames = "super-packets" if datapath == "tap" else "frame by frame"
            yield Contender(f"{EMULATOR} --{datapath}", frames, emulator(datapath), DELAYS_MS)
        else:
            print(f"not here: this {EMULATOR} has no --{datapath}")
    if (found := others.named(others.RATTAN, "rattan")) is not None:
        print(f"{found}: {others.rattan_version(found)}")
        yield Contender(RATTAN, "frame by frame", partial(others.rattan, found), DELAYS_MS)
    else:
        print(f"not here: rattan, neither on PATH nor named by {others.RATTAN}")
    if (found := others.find_mm_delay()) is not None:
        print(f"{found}: {others.mm_delay_version()}")
        yield Contender(MAHIMAHI, "frame by frame", partial(others.mm_delay, found), DELAYS_MS)
    else:
        print(f"not here: Mahimahi's mm-delay, neither on PATH nor named by {others.MM_DELAY} or {others.MM_ROOT}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one TCP stream; a flood takes half of it")
    parser.add_argument("--only", action="append", default=[], help="part of the name of a way; may be repeated")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10_000, help="of the order")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def busy() -> float:
    """Share of the machine that is busy with something else, over one second."""
    before = machine_s()
    time.sleep(1)
    return (machine_s() - before) / (os.cpu_count() or 1)


def inside(options: argparse.Namespace) -> int:
    others.settle()
    AUTOGROUP.write_text(str(HIGHEST_AUTOGROUP))
    everything = list(contenders())
    chosen = [each for each in everything if any(part in each.name for part in options.only or [""])]
    print(
        f"order by seed {options.seed}; {options.rounds} rounds of {options.seconds:g} s; {os.cpu_count()} processors"
    )
    order = random.Random(options.seed)
    results: Results = {(each.name, delay): [] for each in chosen for delay in each.delays_ms}
    notes: dict[str, str] = {}
    others_share = [busy()]
    for number in range(options.rounds):
        turn = [(each, delay) for each in chosen for delay in each.delays_ms]
        order.shuffle(turn)
        for each, delay in turn:
            with each.up(delay) as way:
                try:
                    measured = measure(way, options.seconds, flooded=delay == 0)
                except AssertionError as error:
                    raise AssertionError(f"{each.name}, {delay:g} ms: {error}") from error
            results[each.name, delay].append(measured)
            notes[each.name] = f"{each.frames}; {measured.conditions}"
            print(f"  round {number + 1}: {each.name}, {delay:g} ms: {measured.brief()}", file=sys.stderr, flush=True)
        others_share.append(busy())
    quiet = max(others_share) <= QUIET
    least, most = (f"{100 * share:.0f}" for share in (min(others_share), max(others_share)))
    print(f"between the rounds other work took {least} to {most} % of the machine")
    if not quiet:
        print("DOUBTFUL: rates are what others left, and the CPU of the machine is theirs too")
    print()
    print(table(results, notes))
    judged = verdicts(results, foreign=max(others_share) * (os.cpu_count() or 1))
    print("\n" + "\n".join(map(str, judged)))
    states = {each.met for each in judged}
    return 1 if False in states else 2 if None in states else 0


def main() -> int:
    options = arguments()
    if options.inside:
        return inside(options)
    # Everything that is started dies with the first process of the PID namespace, and that with us.
    fresh = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
    again = [sys.executable, *sys.argv, INSIDE, f"--seed={options.seed}"]
    return subprocess.run([*fresh, *again], check=False, start_new_session=True).returncode


sys.exit(main())
