"""The lab of the contract suites: three nodes on one switch, and what must be installed for a test."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

import pytest

from tunnelmark.errors import MissingPart
from tunnelmark.lab import programs
from tunnelmark.lab.lab import Lab
from tunnelmark.plan.model import Link, Profile, Topology
from tunnelmark.run.deploy import Tunnel

NODES = ("a", "b", "c")
TRIO = Topology("trio", "Three nodes on one switch", NODES, (Link("switch", NODES),))
UNSHAPED = Profile("unshaped", "As fast as the machine", "no figures")
READY = 30.0  # seconds that a mesh may take to answer everywhere, also after a restart

Together = Callable[..., AbstractAsyncContextManager[tuple[Lab, Tunnel]]]
"""Called with a driver and options: a fresh trio on which the VPN answers everywhere, for the length of a block."""


def installed(name: str, needed: Sequence[str], packages: Sequence[str] = ()) -> None:
    """Skip the test where a program is missing; in CI, where all must be there, fail it."""
    try:
        for program in needed:
            programs.find(program, packages)
    except MissingPart as missing:
        text = f"{name}: {missing.message}; {missing.hint}"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)
