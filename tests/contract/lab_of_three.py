"""The lab of the contract suites: three nodes on one switch, and what must be installed for a test."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tunnelmark.errors import MissingPart
from tunnelmark.host import programs
from tunnelmark.host.programs import Requirement
from tunnelmark.lab.labs import Lab
from tunnelmark.packages.status import absent, recipe_for
from tunnelmark.packages.toolchains import obstacle
from tunnelmark.plan.model import Link, Profile, Topology
from tunnelmark.run.deploy import RunningDeployment
from tunnelmark.vpns.base import Driver

NODES = ("a", "b", "c")


def switch(nodes: tuple[str, ...]) -> Topology:
    """Those nodes on one switch."""
    return Topology("switch", f"{len(nodes)} nodes on one switch", nodes, (Link("switch", nodes),))


TRIO = switch(NODES)
UNSHAPED = Profile("unshaped", "As fast as the machine", "no figures")
CONTRACT = "every VPN keeps the contract in each of its arms: on three nodes, two and nine, normalised, through crashes"
READY = 30.0  # seconds that a mesh may take to answer everywhere, also after a restart


@dataclass(frozen=True, slots=True)
class NamedArm:
    """A VPN with the options of one of its arms."""

    name: str
    driver: Driver
    options: Mapping[str, Any]

    @property
    def part(self) -> Requirement:
        """What must be installed for it."""
        return self.driver.part(self.driver.options(**self.options))


Together = Callable[..., AbstractAsyncContextManager[tuple[Lab, RunningDeployment]]]
"""Called with a driver and options: a fresh lab, the trio unless told, on which the VPN answers everywhere, for the length of a block."""


def promised(part: Requirement) -> bool:
    """Whether `make test` sees to it that this part is installed: its recipe is a quick one, or it needs none."""
    recipe = recipe_for(part)
    return recipe is None or (recipe.about.ci and not obstacle(recipe)[0])


def installed(part: Requirement) -> None:
    """Skip the test where something is missing, with the reason; in CI fail it if `make test` should have installed it."""
    try:
        programs.require(replace(part, kernel=()))
    except MissingPart as missing:
        recipe = recipe_for(part)
        text = absent(part, recipe, missing) if recipe else f"{part.name}: {missing.message}; {missing.hint}"
        if os.environ.get("CI") == "true" and promised(part):
            pytest.fail(text)
        pytest.skip(text)
    try:
        programs.require(part)
    except MissingPart as missing:  # nobody can install a kernel here
        pytest.skip(f"{part.name}: {missing.message}; {missing.hint}")
