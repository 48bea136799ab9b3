"""Topologies, profiles and a way to run a coroutine, for tests on real labs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Link, Profile, Topology
from tunnelmark.units import Rate, Size

PAIR = Topology("pair", "two nodes", ("a", "b"), (Link("link", ("a", "b")),))
TRIO = Topology("trio", "three nodes", ("a", "b", "c"), (Link("switch", ("a", "b", "c")),))
UNSHAPED = Profile("unshaped", "no shaper", "test")

_Result = TypeVar("_Result")


def shaped(rate: str, queue: str = "256 KiB") -> Profile:
    return Profile("shaped", rate, "test", both := Direction(rate=Rate.parse(rate), queue=Size.parse(queue)), both)


def in_lab(
    body: Callable[[Lab], Awaitable[_Result]],
    topology: Topology = PAIR,
    profile: Profile = UNSHAPED,
    *,
    ipv6: bool = False,
    sysctls: Mapping[str, str] = MappingProxyType({}),
) -> _Result:
    """Run `body` in a fresh lab, and end it."""

    async def run() -> _Result:
        async with LabClient() as labs, labs.lab(topology, profile, ipv6=ipv6, sysctls=sysctls) as lab:
            return await body(lab)

    return asyncio.run(run())
