"""Takes the machine's yardsticks: the time that it needs for each of the few operations that make up every VPN's work.

The loops are in `tunnelmark-cores yardstick` (crates/cores); what needs a network has one of its own there, which goes with it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from tunnelmark.errors import LabError
from tunnelmark.host import fingerprint
from tunnelmark.host.keep_awake import PROGRAM
from tunnelmark.host.programs import find
from tunnelmark.model.yardstick_lengths import TITLES, Length, length

SECONDS = 0.25
"""Seconds for each of the eleven yardsticks: 3 s in all, with the time in which each finds what fills a slice."""

_PATIENCE = 60.0  # seconds until it must have ended, which takes 3 to 4


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """All of them, by the names of `TITLES`, taken on `core`, and on `other` with it; `absent` says why one was not taken."""

    core: int
    other: int
    lengths: Mapping[str, Length]
    absent: Mapping[str, str]


def measure(seconds: float = SECONDS) -> Yardsticks:
    """Measure each yardstick on this machine, for the given number of seconds.

    MissingPart without the program, LabError if it fails. What the machine refuses, such as a TUN device without root, is absent.
    """
    core, other = partners(os.sched_getaffinity(0), fingerprint.siblings())
    argv = [str(find(PROGRAM)), "yardstick", str(seconds), str(core), str(other)]
    hint = "`make setup` builds it again; --no-measure leaves yardsticks out"
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"the yardsticks could not be taken: {error}", hint=hint) from error
    if done.returncode != 0:
        raise LabError(f"the yardsticks could not be taken: {done.stderr.strip().partition(chr(10))[0]}", hint=hint)
    found = json.loads(done.stdout)
    lengths = {name: Length(**found["lengths"][name]) for name in TITLES if name in found["lengths"]}
    return Yardsticks(core, other, lengths, found["absent"])


def told(found: Yardsticks) -> str:
    """The lengths that say most, in one line. Pure."""
    short = {"system call": "system call", "wake-up, one core": "wake-up", "wake-up, two cores": "to another core",
             "TUN read": "TUN read", "TUN write": "TUN write", "veth": "veth"}  # fmt: skip
    each = [f"{word} {length(found.lengths[name].value)}" for name, word in short.items() if name in found.lengths]
    return ", ".join(each) or "nothing could be measured"


def partners(cores: Set[int], siblings: Sequence[Set[int]] = ()) -> tuple[int, int]:
    """The core on which yardsticks are taken, and another one that shares nothing with it if there is such a one.

    The last one is taken, for the first has most of the machine's interrupts.
    """
    core = max(cores)
    shared = next((group for group in siblings if core in group), {core})
    apart = sorted(cores - set(shared)) or sorted(cores - {core}) or [core]
    return core, apart[0]
