"""TCP's receive window over a link with a delay, inside a VXLAN on the bare link."""

from __future__ import annotations

import asyncio
import math
import re
import time
from pathlib import Path

from tunnelmark import registry
from tunnelmark.lab.client import LabClient
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_profile, load_topology
from tunnelmark.plan.model import InnerNetwork
from tunnelmark.run.deploy import prepare

FILES = Files((PACKAGED,))
SECONDS = 3
FIRST = 1 << 16  # bytes: the window that Linux begins with, by default
_LOOK = 0.1  # seconds from one look at the window to the next


async def window(profile: str, logs: Path, enough: float = math.inf) -> int:
    """The window in bytes that the receiver of one connection has announced after some seconds, or as soon as it is above `enough`."""
    driver, options = registry.arm("direct")
    async with (
        LabClient() as labs,
        labs.lab(load_topology("lan-relay", FILES), load_profile(profile, FILES)) as lab,
    ):
        tunnel = prepare(lab, driver, options, logs, inner=InnerNetwork(1230))
        await tunnel.start()
        await tunnel.answer(30)
        server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
        await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 30)
        to = str(tunnel.address["b"])
        client = await lab.nodes["a"].spawn(["iperf3", "-c", to, "-t60"])
        deadline = time.monotonic() + SECONDS  # what is measured: how far the window is after that time
        while True:
            await asyncio.sleep(_LOOK)
            shown = await lab.nodes["a"].run(["ss", "-tinH", "dst", to])
            found = max(map(int, re.findall(r"snd_wnd:(\d+)", shown.stdout)), default=0)
            if found > enough or time.monotonic() >= deadline:
                break
        await client.stop()
        await server.stop()
        return found
