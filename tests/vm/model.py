"""Runs the emulator's netem model in virtual time on given arrivals, by the example `decide` of emulator-core."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from vm.compare import Probes
from vm.settings import Setting

ROOT = Path(__file__).parents[2]
BUILD = ("cargo", "build", "--quiet", "--release", "-j1", "-p", "emulator-core", "--example", "decide")


def build() -> Path:
    """The compiled example."""
    subprocess.run(BUILD, cwd=ROOT, check=True, timeout=600)
    said = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--offline", "--format-version=1"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Path(json.loads(said.stdout)["target_directory"], "release", "examples", "decide")


def decide(program: Path, setting: Setting, netem: Probes, seeds: int) -> list[Probes]:
    """What the model does to the probes that netem met, once for each of so many seeds."""
    arrived = (netem.arrived - netem.arrived[0]).tolist()
    asked = {"config": setting.config(), "bytes": setting.bytes, "arrived_ns": arrived, "seeds": seeds}
    done = subprocess.run([program], input=json.dumps(asked), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [Probes.read(json.loads(line), arrived) for line in done.stdout.splitlines()]
