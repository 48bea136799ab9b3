"""Measures the machine's yardsticks: the time that it takes for each of the few operations that every VPN consists of.

The program `tunnelmark-cores yardstick` (crates/cores) carries out the operations. For yardsticks that need a network,
it makes network namespaces, which end with it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from tunnelmark.errors import LabError
from tunnelmark.host import fingerprint
from tunnelmark.host.cores import usable
from tunnelmark.host.keep_awake import PROGRAM
from tunnelmark.host.programs import find
from tunnelmark.model.yardstick_lengths import TITLES, Length, length

SECONDS = 0.25
"""Seconds for which each of the eleven yardsticks is measured; with each one's calibration, all together take 3 s."""

_PATIENCE = 60.0  # seconds until it must have ended, which takes 3 to 4


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """The results of the yardsticks, by the yardsticks' names (`TITLES`).

    `lengths`: the nanoseconds that one operation took, by name. `absent`: by name, the reason why that yardstick could
    not be measured; each yardstick is in one of the two. `core`: the core on which they were measured. `other`: the
    second core, for the wake-up of a thread on another core.
    """

    core: int
    other: int
    lengths: Mapping[str, Length]
    absent: Mapping[str, str]


def measure(seconds: float = SECONDS) -> Yardsticks:
    """Measure each yardstick on this machine for the given number of seconds, and return the results.

    MissingPart if the program is not built; LabError if it fails, or takes more than 60 s. A yardstick that the machine
    refuses, such as a TUN device without root, is absent.
    """
    core, other = partners(usable(), fingerprint.siblings())  # a run's own cores may be fewer while its lab is up
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
    """Return the most telling results in one line; "nothing could be measured" if all of them are absent. Pure."""
    short = {"system call": "system call", "wake-up, one core": "wake-up", "wake-up, two cores": "to another core",
             "TUN read": "TUN read", "TUN write": "TUN write", "veth": "veth"}  # fmt: skip
    each = [f"{word} {length(found.lengths[name].value)}" for name, word in short.items() if name in found.lengths]
    return ", ".join(each) or "nothing could be measured"


def partners(cores: Set[int], siblings: Sequence[Set[int]] = ()) -> tuple[int, int]:
    """Return the core for yardsticks, and a second one, which shares no physical core with it if that is possible.

    If there is only one core, it is returned twice.
    """
    core = max(cores)  # the first core has most of the machine's interrupts
    shared = next((group for group in siblings if core in group), {core})
    apart = sorted(cores - set(shared)) or sorted(cores - {core}) or [core]
    return core, apart[0]
