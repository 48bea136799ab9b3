"""Takes the machine's yardsticks: what it needs for the few things of which the work of every VPN consists.

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

SECONDS = 0.25
"""For each of eleven: 3 s in all, with the time in which each finds out how long it takes."""

PACKET = 1420
"""Bytes of a packet of which the ciphers and the TUN device are asked: a full one inside of WireGuard on Ethernet."""

TITLES: Mapping[str, str] = {
    "system call": "a system call that does nothing",
    "wake-up, one core": "to wake a thread on the same core, by a pipe",
    "wake-up, two cores": "to wake a thread on another core, by a pipe",
    "timer": "how late a timer of 200 µs ends",
    "copy": "to copy 1 MiB from memory to memory",
    "AES-128-GCM": f"to encrypt a packet of {PACKET} bytes by AES-128-GCM",
    "AES-256-GCM": f"to encrypt a packet of {PACKET} bytes by AES-256-GCM",
    "ChaCha20-Poly1305": f"to encrypt a packet of {PACKET} bytes by ChaCha20-Poly1305",
    "TUN read": f"to read a packet of {PACKET} bytes from a TUN device",
    "TUN write": "to write one to a TUN device, and on into a socket",
    "veth": "a packet of 64 bytes, from a socket over a veth pair into another one",
}
"""What each takes, in words; in this order they are shown."""

_PATIENCE = 60.0  # seconds until it must have ended, which takes 3 to 4


@dataclass(frozen=True, slots=True)
class Length:
    """What a yardstick showed, in nanoseconds: the median of its slices, and their quartiles."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """All of them, by the names of `TITLES`, taken on `core`, and on `other` beside it; `absent` says why one was not."""

    core: int
    other: int
    lengths: Mapping[str, Length]
    absent: Mapping[str, str]


def measure(seconds: float = SECONDS) -> Yardsticks:
    """Take them on this machine, for so many seconds each.

    MissingPart without the program, LabError if it fails. What the machine refuses, such as a TUN device without root, is absent.
    """
    core, other = partners(os.sched_getaffinity(0), fingerprint.siblings())
    argv = [str(find(PROGRAM)), "yardstick", str(seconds), str(core), str(other)]
    hint = "`make setup` builds it anew; --no-measure leaves yardsticks out"
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


def length(ns: float) -> str:
    """Nanoseconds in the unit that suits them, with three figures."""
    factor, unit = next(((f, u) for f, u in ((1e6, "ms"), (1e3, "µs")) if ns >= f), (1.0, "ns"))
    return f"{float(f'{ns / factor:.3g}'):g} {unit}"


def partners(cores: Set[int], siblings: Sequence[Set[int]] = ()) -> tuple[int, int]:
    """The core on which yardsticks are taken, and another one that shares nothing with it if there is such a one.

    The last one is taken, for the first has most of the machine's interrupts.
    """
    core = max(cores)
    shared = next((group for group in siblings if core in group), {core})
    apart = sorted(cores - set(shared)) or sorted(cores - {core}) or [core]
    return core, apart[0]
