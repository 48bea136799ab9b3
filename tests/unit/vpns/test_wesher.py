"""wesher: one key for all, a hub that joins nobody, and a mesh that is whole before anybody speaks."""

from __future__ import annotations

from base64 import b64decode

from tunnelmark.vpns.base import Daemon, Holds
from unit.vpns.test_drivers import deployed, mesh, steps


def test_all_nodes_have_one_key_of_32_bytes() -> None:
    (line,) = {one.content for one in deployed("wesher", 4).files}
    assert len(b64decode(line.strip().partition("KEY=")[2])) == 32


def test_spokes_join_the_hub_and_the_hub_joins_nobody() -> None:
    for step in steps(deployed("wesher", 4)):
        if isinstance(step, Daemon) and step.name == "wesher":
            joins = step.argv[step.argv.index("--join") + 1] if "--join" in step.argv else ""
            assert joins == ("" if step.node == mesh(4).hub.name else str(mesh(4).hub.underlay))


def test_spokes_wait_until_they_know_everybody() -> None:
    waits = {step.node: step.argv[-1] for step in deployed("wesher", 4).phases[-1] if isinstance(step, Holds)}
    assert waits == {spoke.name: "3" for spoke in mesh(4).spokes}
