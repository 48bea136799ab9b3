"""Reads the output of iputils' ping: which probes were answered, when and how fast, and how many were lost."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tunnelmark.errors import OutputUnreadable

_ANSWER = re.compile(r"^\[(\d+\.\d+)\] \d+ bytes from \S+ icmp_seq=(\d+) .*time=([0-9.]+) ms$", re.MULTILINE)
_SUMMARY = re.compile(r"^(\d+) packets transmitted, (\d+) received,.* time (\d+)ms$", re.MULTILINE)
_HINT = "compare `ping -V` and the raw output"

SEQUENCE_NUMBERS = 65536
"""How many sequence numbers there are (icmp_seq has 16 bits); answers to more probes could not be distinguished."""


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes of one ping.

    `answers`: for each answered probe, when it was sent (seconds after the first) and its round-trip time (ms).
    `lost`: the number of lost probes. `early`: the number of answered probes that would have counted as lost without their
    answer. `sent_for`: seconds from the first probe to the last. `spacing`: the average time in seconds between two probes.
    """

    answers: tuple[tuple[float, float], ...]
    lost: int
    early: int
    sent_for: float
    spacing: float

    @property
    def loss(self) -> float:
        """The share of lost probes in per cent, of the probes that would count as lost without an answer."""
        return 100 * self.lost / (self.lost + self.early)


def read(text: str, duration: float) -> Probes:
    """Read the output of a ping with `-D` that ended after `duration` seconds without waiting for the last answers.

    A probe without an answer counts as lost if even the slowest answer would have come before ping ended. A probe that
    was sent later counts neither as answered nor as lost. Raises OutputUnreadable if the output is not ping's, or not
    complete.
    """
    summary = _SUMMARY.search(text)
    if summary is None or not int(summary[1]):
        raise OutputUnreadable("ping printed no summary", hint=_HINT)
    answers: dict[int, tuple[float, float]] = {}
    for stamp, sequence, milliseconds in _ANSWER.findall(text):  # duplicates say (DUP!) and do not match
        answers[int(sequence)] = (float(stamp) - float(milliseconds) / 1e3, float(milliseconds))
    if int(summary[2]) != len(answers):
        raise OutputUnreadable("ping's output is cut short or in another form", hint=_HINT)
    transmitted, sent_for = int(summary[1]), int(summary[3]) / 1e3
    spacing = sent_for / max(1, transmitted - 1)
    last = max(answers, key=lambda sequence: answers[sequence][1], default=1)
    slowest = answers[last][1] / 1e3 if answers else 0.0
    early = [
        sequence
        for sequence in range(1, transmitted + 1)
        if sequence <= last or (sequence - 1) * spacing + slowest < duration
    ]
    lost = sum(sequence not in answers for sequence in early)
    first = min((sent for sent, _ in answers.values()), default=0.0)
    return Probes(
        answers=tuple((max(0.0, sent - first), milliseconds) for sent, milliseconds in answers.values()),
        lost=lost,
        early=len(early) - lost,
        sent_for=sent_for,
        spacing=spacing,
    )
