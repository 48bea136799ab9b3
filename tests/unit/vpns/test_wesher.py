"""wesher: one key for all, nodes that join one after the other, and a mesh that is whole before anybody speaks."""

from __future__ import annotations

from base64 import b64decode

from tunnelmark.model.steps import CommandSucceeds, Daemon
from unit.vpns.test_drivers import deployed, mesh


def test_all_nodes_have_one_key_of_32_bytes() -> None:
    (line,) = {one.content for one in deployed("wesher", 4).files}
    assert len(b64decode(line.strip().partition("KEY=")[2])) == 32


def test_each_joins_all_that_were_there_before_it() -> None:
    there: list[str] = []
    for phase in deployed("wesher", 4).phases:
        for step in (step for step in phase if isinstance(step, Daemon) and step.name == "wesher"):
            joins = step.argv[step.argv.index("--join") + 1].split(",") if "--join" in step.argv else []
            assert joins == there, "one at a time: the next begins when the ones before it listen"
            assert step.ready is not None
            there.append(str(next(host.underlay for host in mesh(4).hosts if host.name == step.node)))
    assert len(there) == 4


def test_spokes_wait_until_they_know_everybody() -> None:
    waits = {step.node: step.argv[-1] for step in deployed("wesher", 4).phases[-1] if isinstance(step, CommandSucceeds)}
    assert waits == {spoke.name: "3" for spoke in mesh(4).spokes}
