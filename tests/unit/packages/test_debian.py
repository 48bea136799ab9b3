"""The script around apt: no package may start a service, an owner's policy is never written to, and ours does not stay.

apt is a stand-in that asks the policy what every package's installation asks it; the real one is asked by `packages install`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tunnelmark.packages import debian


def run(folder: Path, apt: str, policy: str | None) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the script with this apt and this policy of an owner; what it said, and what apt was told and asked."""
    stand_ins, path, log = folder / "bin", folder / "policy-rc.d", folder / "log"
    stand_ins.mkdir()
    for name, text in {"apt-get": apt.format(log=log, policy=path), "dpkg": "exit 0", "systemctl": "exit 0"}.items():
        (stand_ins / name).write_text(f"#!/bin/sh\n{text}\n")
        (stand_ins / name).chmod(0o755)
    if policy is not None:
        path.write_text(policy)
        path.chmod(0o755)
    argv = ["sh", "-c", debian.SCRIPT, "apt", str(path), "tinc"]
    environ = os.environ | {"PATH": f"{stand_ins}:{os.environ['PATH']}"}
    done = subprocess.run(argv, capture_output=True, text=True, env=environ, timeout=30, check=False)
    assert (path.read_text() if path.exists() else None) == policy
    return done, log.read_text().splitlines()


ASKS = 'echo "$@" >>{log}; code=0; {policy} tinc start || code=$?; echo "policy $code" >>{log}'


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(None, id="no policy"),
        pytest.param("#!/bin/sh\nexit 101\n", id="one that denies"),
        pytest.param("#!/bin/sh\nexit 0\n", id="one that allows", marks=pytest.mark.root),
    ],
)
def test_no_service_may_be_started(tmp_path: Path, policy: str | None) -> None:
    done, said = run(tmp_path, ASKS, policy)
    assert done.returncode == 0, done.stderr
    assert said[0].endswith("install -y --no-install-recommends tinc")
    assert said[-1] == "policy 101"


def test_lists_that_are_missing_are_fetched(tmp_path: Path) -> None:
    apt = 'echo "$@" >>{log}; case "$*" in *update) touch {log}.lists ;; *) [ -e {log}.lists ] ;; esac'
    done, said = run(tmp_path, apt, None)
    assert done.returncode == 0, done.stderr
    assert [line.split()[2] for line in said] == ["install", "update", "install"]


def test_a_package_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    done, _ = run(tmp_path, 'echo "$@" >>{log}; case "$*" in *update) ;; *) exit 100 ;; esac', None)
    assert done.returncode == 100


def test_versions_are_those_of_the_system() -> None:
    assert debian.versions(["no-such-package"]) == {}
    if Path("/var/lib/dpkg/status").exists():
        assert debian.versions(["dpkg", "no-such-package"]).keys() == {"dpkg"}
