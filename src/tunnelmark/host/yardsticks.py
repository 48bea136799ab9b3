"""Measures the machine's yardsticks: the time that it takes for each of the few operations that every VPN consists of.

The loops are in `tunnelmark-cores yardstick` (crates/cores). A yardstick that needs a network has one of its own there,
which ends with it.
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
"""Seconds for each of the eleven yardsticks; with the time in which each finds its number of operations, 3 s in all."""

_PATIENCE = 60.0  # seconds until it must have ended, which takes 3 to 4


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """The results by name (see `TITLES`): `lengths`, or why there is none in `absent`. `other`: the second core."""

    core: int
    other: int
    lengths: Mapping[str, Length]
    absent: Mapping[str, str]


def measure(seconds: float = SECONDS) -> Yardsticks:
    """Measure each yardstick on this machine, for the given number of seconds.

    MissingPart without the program, LabError if it fails. A yardstick that the machine refuses, such as a TUN device
    without root, is absent.
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
    """Return the most telling lengths in one line. Pure."""
    short = {"system call": "system call", "wake-up, one core": "wake-up", "wake-up, two cores": "to another core",
             "TUN read": "TUN read", "TUN write": "TUN write", "veth": "veth"}  # fmt: skip
    each = [f"{word} {length(found.lengths[name].value)}" for name, word in short.items() if name in found.lengths]
    return ", ".join(each) or "nothing could be measured"


def partners(cores: Set[int], siblings: Sequence[Set[int]] = ()) -> tuple[int, int]:
    """Return the core for yardsticks, and a second one, which shares no physical core with it if that is possible."""
    core = max(cores)  # the first core has most of the machine's interrupts
    shared = next((group for group in siblings if core in group), {core})
    apart = sorted(cores - set(shared)) or sorted(cores - {core}) or [core]
    return core, apart[0]
