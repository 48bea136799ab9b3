"""A lab to play in: its daemons' logs, while it stands and when it could not be made."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from support.command import command, environment, run
from tunnelmark.cli.lab_states import own

pytestmark = pytest.mark.root

# A real tinc whose interface on node b has another name than the driver says.
MISNAMED = """
from dataclasses import replace
from tunnelmark.vpns import tinc

def deploy(mesh, options):
    deployment = tinc.deploy(mesh, options)
    there = deployment.overlays
    return replace(deployment, overlays=there | {"b": replace(there["b"], interface="vpn9")})

DRIVER = replace(tinc.DRIVER, name="misnamed", deploy=deploy, variants={}, builds={}, startup_time=600.0)
"""


def test_an_interface_that_is_not_there_is_found_by_its_name_and_the_logs_are_kept(tmp_path: Path) -> None:
    (tmp_path / "vpns").mkdir()
    (tmp_path / "vpns" / "misnamed.py").write_text(textwrap.dedent(MISNAMED))
    # Were a ping waited for, that would be for ten minutes, and `lab up` would give up with other words.
    up = run("lab", "up", "--name", "wrong-lab", "--vpn", "misnamed", path=tmp_path)
    assert up.returncode != 0
    assert "node b has no interface vpn9; it has eth0, " in up.stderr
    assert str(own("wrong-lab").kept) in up.stderr and "lab logs NODE --name wrong-lab" in up.stderr
    assert "trial" not in up.stderr
    shown = run("lab", "logs", "b", "--name", "wrong-lab")
    assert "Ready" in shown.stdout, shown.stderr
    assert not own("wrong-lab").logs.exists()
    shutil.rmtree(own("wrong-lab").kept)


def test_a_program_that_is_not_installed_is_named_with_what_brings_it(tmp_path: Path) -> None:
    (tmp_path / "vpns").mkdir()
    driver = "from dataclasses import replace\nfrom tunnelmark.vpns import nebula\n"
    driver += 'DRIVER = replace(nebula.DRIVER, name="lacking", programs=("no-such-program",), variants={}, builds={})\n'
    (tmp_path / "vpns" / "lacking.py").write_text(driver)
    up = run("lab", "up", "--name", "no-lab", "--vpn", "lacking", path=tmp_path)
    assert up.returncode != 0
    assert "the program no-such-program is not installed" in up.stderr
    assert "hint: tunnelmark packages install" in up.stderr or "apt-get install" in up.stderr


def test_logs_are_followed_until_the_lab_ends() -> None:
    up = run("lab", "up", "--name", "logged-lab", "--vpn", "tinc")
    assert up.returncode == 0, up.stderr
    try:
        assert "Ready" in run("lab", "logs", "a", "tincd", "--name", "logged-lab").stdout
        follower = subprocess.Popen(
            command("lab", "logs", "a", "--follow", "--name", "logged-lab"),
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert follower.stdout is not None
        assert follower.stdout.readline()
        assert follower.poll() is None
    finally:
        assert run("lab", "down", "--name", "logged-lab").returncode == 0
    assert follower.wait(timeout=60) == 0
    assert not own("logged-lab").logs.exists()
