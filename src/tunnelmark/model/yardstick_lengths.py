"""Defines the machine's yardsticks: what each measures, its result, and how a duration is printed. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PACKET = 1420
"""Bytes of the packet for the ciphers and the TUN device: the largest that fits inside WireGuard on Ethernet."""

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
"""What each yardstick measures, in words, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Length:
    """The result of a yardstick: the nanoseconds that one operation took.

    It is measured in many slices of a millisecond or so. `value`: the median of the slices. `low`, `high`: the
    quartiles.
    """

    value: float
    low: float
    high: float


def length(ns: float) -> str:
    """Return a duration, given in nanoseconds, as text with three significant digits, in ns, µs or ms."""
    factor, unit = next(((f, u) for f, u in ((1e6, "ms"), (1e3, "µs")) if ns >= f), (1.0, "ns"))
    return f"{float(f'{ns / factor:.3g}'):g} {unit}"
