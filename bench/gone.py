"""Prints, a line a lab, the seconds until all its interfaces were gone; run it as `unshare --net python gone.py ROUNDS`.

That its processes have ended is not the end: the kernel takes namespaces apart later, by itself. An
interface here whose other end is on a node vanishes exactly when that node's namespace does.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from tunnelmark.lab.client import LabClient
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology


async def main(rounds: int) -> None:
    files = Files.standard()
    async with LabClient() as labs:
        for _ in range(rounds):
            lab = await labs.up(load_topology("lan-3", files), load_profile("gigabit", files))
            for node in (*lab.nodes.values(), lab.middle):
                pair = [
                    "ip",
                    "link",
                    "add",
                    f"end-{node.name}",
                    "type",
                    "veth",
                    "peer",
                    "name",
                    "end",
                    "netns",
                    str(node.pid),
                ]
                subprocess.run(pair, check=True)
            began = time.monotonic()
            await lab.down()
            while "end-" in Path("/proc/self/net/dev").read_text():
                await asyncio.sleep(0.001)
            print(time.monotonic() - began)


asyncio.run(main(int(sys.argv[1])))
