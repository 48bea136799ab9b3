"""Runs inside the guest: the CPU account of a busy lab with an arm, as JSON; the guest has cgroup v2 and nothing else.

    python -m vm.account ARM PROFILE SECONDS INSTRUCTION_NS FOLDER

INSTRUCTION_NS is what an instruction takes by the guest's clock, 0 where it has the host's.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from support.accounting import Account, busy
from support.labs import PAIR
from tunnelmark import registry
from tunnelmark.host.keep_awake import COUNTED
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.vm import clock_keepalive
from tunnelmark.linux import cgroups
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile
from tunnelmark.run.deploy import deploy


async def account(arm: str, profile: str, seconds: float, raw: Path) -> Account:
    """The account of so many seconds of four TCP streams over the arm."""
    driver, options = registry.arm(arm)
    async with (
        LabClient() as labs,
        labs.lab(PAIR, load_profile(profile, Files.standard()), raw=raw) as lab,
        deploy(lab, driver, options, logs=raw, ready_timeout=60) as tunnel,
    ):
        return await busy(labs, lab, str(tunnel.address["b"]), seconds)


def main(arm: str, profile: str, seconds: str, instruction_ns: str, folder: str) -> None:
    """Print the account, and where the kernel's counts came from."""
    if int(instruction_ns):
        os.environ[COUNTED] = "1"
        clock_keepalive.ClockLoop(int(instruction_ns))
        clock_keepalive.forward_first()
    unified, cpu = cgroups.mounted()
    found = asyncio.run(account(arm, profile, float(seconds), Path(folder)))
    pure = unified is not None and cpu == unified and "cpuacct" not in Path("/proc/self/mounts").read_text()
    print(json.dumps({"account": asdict(found), "pure_v2": pure}))


if __name__ == "__main__":
    main(*sys.argv[1:])
