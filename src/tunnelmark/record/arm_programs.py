"""Finds what a run's environment records of the VPN of one arm: its version and its programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tunnelmark.record.results import ArmInfo

VERSION = "version"
"""The key of the version in the record of a VPN."""


def recorded(environment: Mapping[str, Any], arm: ArmInfo) -> Mapping[str, Any]:
    """Return what an `environment.json` records of an arm's VPN: its version and its programs.

    `version` is a text, `programs` has the `path` and `sha256` of each program by its name, and `installed` is the
    installation's record, if a recipe made it. {} if nothing is recorded, as for an arm that could not take part.
    """
    vpns = environment.get("vpns")
    if not isinstance(vpns, Mapping):
        return {}
    found = (vpns.get(name) for name in _names(arm))
    return next((each for each in found if isinstance(each, Mapping)), {})


def version(environment: Mapping[str, Any], arm: ArmInfo) -> str:
    """Return the version of an arm's VPN; "" if it is not recorded."""
    return str(recorded(environment, arm).get(VERSION) or "")


def _names(arm: ArmInfo) -> Iterator[str]:
    """Yield the keys under which an arm's VPN may be recorded, the most exact one first.

    A further build of a VPN has its own key (`vpns.base.Driver.part`), such as `nebula 1.10`. If the arm has its own
    programs, its name follows in parentheses (`run.runner.RunContext.part`), and only that key describes what it ran.
    """
    build = arm.options.get("build")
    for part in (f"{arm.vpn} {build}", arm.vpn) if build else (arm.vpn,):
        yield f"{part} ({arm.name})"
        if not arm.programs:
            yield part
