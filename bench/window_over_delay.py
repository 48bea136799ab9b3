"""Whether TCP's receive window grows over a link with a delay, inside a VXLAN, where the emulator shares a core with the receiver.

    python bench/window_over_delay.py [--connections N] [--profile NAME]

Each connection is of three seconds on a link of its own; the window is what the receiver has announced at the end. One that has stayed
at 64 KiB (`stuck`) carries 10 Mbit/s at 50 ms, whatever the link.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import tempfile
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


async def window(profile: str, logs: Path) -> int:
    """The window in bytes that the receiver of one connection has announced after some seconds."""
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
        await asyncio.sleep(SECONDS)  # what is measured: how far the window is after that time
        shown = await lab.nodes["a"].run(["ss", "-tinH", "dst", to])
        await client.stop()
        await server.stop()
        return max(map(int, re.findall(r"snd_wnd:(\d+)", shown.stdout)), default=0)


def main() -> None:
    """Print how many connections are stuck, and the windows of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--connections", type=int, default=10, metavar="N")
    parser.add_argument("--profile", default="edge-delay-50+gigabit", metavar="NAME")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as logs:
        found = [asyncio.run(window(chosen.profile, Path(logs))) for _ in range(chosen.connections)]
    stuck = sum(each <= FIRST for each in found)
    print(
        f"{chosen.profile}: {stuck} of {len(found)} stuck at {FIRST >> 10} KiB; median {statistics.median(found) / 1024:.0f} KiB after {SECONDS} s"
    )
    print("KiB: " + " ".join(f"{each / 1024:.0f}" for each in found))


if __name__ == "__main__":
    main()
