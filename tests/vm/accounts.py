"""Has a guest, which has cgroup v2 and nothing else, say where its CPU goes while a lab works in it (see `account`)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from support.accounting import Account
from tunnelmark.lab.node import Completed
from tunnelmark.lab.vm import Guest, Hardware
from vm.test_machine import in_guest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 2
HARDWARE = Hardware(cores=1, memory=2048, virtual_clock=True)


def accounts(arms: tuple[str, ...], folder: Path) -> dict[str, Account]:
    """The account of each arm, all in one guest whose clock counts instructions, so that the host's load changes none."""
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests")))

    async def body(machine: Guest) -> dict[str, Completed]:
        done = {}
        for arm in arms:
            (folder / arm).mkdir()
            words = [arm, "fast-ethernet", str(SECONDS), str(HARDWARE.instruction_ns), str(folder / arm)]
            argv = [sys.executable, "-m", "vm.account", *words]
            done[arm] = await machine.run(argv, 600, env={"PYTHONPATH": paths})
        return done

    found = {}
    for arm, done in in_guest(body, folder, HARDWARE).items():
        assert done.code == 0, done.stderr
        said = json.loads(done.stdout)
        assert said["pure_v2"], "the guest has a cgroup v1, so this shows nothing"
        found[arm] = Account(**said["account"])
        print(f"\n{arm}: " + "\n".join(found[arm].lines()))
    return found
