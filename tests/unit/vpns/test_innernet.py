"""innernet: everybody is invited with the address that the lab expects, and invitations are made once."""

from __future__ import annotations

import shlex

import pytest

from tunnelmark.model.steps import CopyFile
from unit.vpns.test_drivers import deployed, mesh, steps


@pytest.mark.parametrize("size", [2, 4])
def test_every_spoke_is_invited_with_its_address_and_gets_its_own_invitation(size: int) -> None:
    deployment = deployed("innernet", size)
    (setup,) = deployment.files
    lines = [shlex.split(line) for line in setup.content.splitlines()]
    invited = {line[line.index("--name") + 1]: line for line in lines if "add-peer" in line}
    assert set(invited) == {spoke.name for spoke in mesh(size).spokes}
    handed = {step.node: step for step in steps(deployment) if isinstance(step, CopyFile)}
    for spoke in mesh(size).spokes:
        line = invited[spoke.name]
        assert line[line.index("--ip") + 1] == str(deployment.overlays[spoke.name].address)
        assert line[line.index("--save-config") + 1] == str(handed[spoke.name].path)
        assert handed[spoke.name].source == mesh(size).hub.name


def test_the_network_is_made_once() -> None:
    (setup,) = deployed("innernet").files
    first, guard, *_, last = setup.content.splitlines()
    assert first == "set -e"
    assert guard.startswith("test -e ")
    assert guard.endswith(" && exit")
    assert guard.split(" && ")[0].removeprefix("test -e ") == last.removeprefix(": > ")


def test_spokes_learn_of_each_other_one_after_the_other() -> None:
    last = deployed("innernet", 4).phases[-3:]
    assert [[step.node for step in phase] for phase in last] == [[spoke.name] for spoke in mesh(4).spokes]
