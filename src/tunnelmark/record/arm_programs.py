"""What a run's environment records of the VPN of one arm: its version and its programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tunnelmark.record.results import ArmInfo

VERSION = "version"
"""The key of a version in what is recorded of a VPN."""


def recorded(environment: Mapping[str, Any], arm: ArmInfo) -> Mapping[str, Any]:
    """The record of an arm's VPN; empty where there is none, as of an arm that could not take part."""
    vpns = environment.get("vpns")
    if not isinstance(vpns, Mapping):
        return {}
    found = (vpns.get(name) for name in _names(arm))
    return next((each for each in found if isinstance(each, Mapping)), {})


def version(environment: Mapping[str, Any], arm: ArmInfo) -> str:
    """The version of an arm's VPN; empty where it is not recorded."""
    return str(recorded(environment, arm).get(VERSION) or "")


def _names(arm: ArmInfo) -> Iterator[str]:
    """The keys under which an arm's VPN may be, the most exact one first.

    A further build has a key of its own (`vpns.base.Driver.part`), such as `nebula 1.10`. An arm with programs of its own has
    its name behind that (`run.runner.RunContext.part`), and then no other key holds what it ran.
    """
    build = arm.options.get("build")
    for part in (f"{arm.vpn} {build}", arm.vpn) if build else (arm.vpn,):
        yield f"{part} ({arm.name})"
        if not arm.programs:
            yield part
