"""The process behind `tunnelmark lab up`: holds one lab until it is told to end, or killed.

Started in a session of its own as `python -m tunnelmark.cli.hold NAME TOPOLOGY PROFILE [VPN]`. It says
one JSON object on stdout when the lab is up (or why it is not), and keeps the same in a state file
through which `lab exec` and `lab down` find it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tunnelmark import registry
from tunnelmark.cli import capacity
from tunnelmark.errors import TunnelmarkError
from tunnelmark.lab.lab import MIDDLE, Keeper, Lab
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology
from tunnelmark.run.deploy import Tunnel, log_end, prepare

STATES = Path("/run/tunnelmark")
"""Where the state files of labs that stand now are kept."""

READY_TIMEOUT = 20.0  # seconds a VPN may take to answer in every direction


def state_file(name: str) -> Path:
    """The state file of a lab."""
    return STATES / f"{name}.json"


async def hold(name: str, topology: str, profile: str, vpn: str | None) -> None:
    """Bring the lab up, say so, and wait for SIGTERM or SIGINT."""
    files, state = Files.standard(), state_file(name)
    driver, options = registry.arm(vpn) if vpn else (None, None)
    what = load_topology(topology, files), load_profile(profile, files)
    logs = STATES / f"{name}.logs"  # under /run: gone with the lab
    begun = time.monotonic()
    async with Keeper(scratch=[state, logs]) as keeper:
        timings = {"keeper": time.monotonic() - begun}
        what = what[0], await capacity.closed(keeper, what[1], what[0])
        trial_run = await keeper.up(*what)  # a lab made and ended, so that `--timings` can say both
        timings["gone"] = await trial_run.down()
        lab = await keeper.up(*what)
        timings |= {"nodes": lab.timings.nodes, "links": lab.timings.links, "up": lab.timings.up}
        tunnel = prepare(lab, driver, options, logs) if driver and options else None
        if tunnel is not None:
            logs.mkdir(parents=True, exist_ok=True)
            started = time.monotonic()
            try:
                await tunnel.start()
                await tunnel.answer(READY_TIMEOUT + (driver.start_of(len(what[0].nodes)) if driver else 0.0))
            except TunnelmarkError as error:
                raise type(error)(f"{error.message}\n{log_end(logs)}", hint=error.hint) from error
            timings["vpn"] = time.monotonic() - started
        content = _state(name, what[0].name, what[1].name, vpn, lab, tunnel, keeper, timings)
        STATES.mkdir(mode=0o755, exist_ok=True)
        state.write_text(json.dumps(content))
        _say(content)
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await ended.wait()


def _state(
    name: str,
    topology: str,
    profile: str,
    vpn: str | None,
    lab: Lab,
    tunnel: Tunnel | None,
    keeper: Keeper,
    timings: dict[str, float],
) -> dict[str, Any]:
    return {
        "name": name,
        "pid": os.getpid(),
        "topology": topology,
        "profile": profile,
        "vpn": vpn,
        "nodes": {
            node.name: {
                "pid": node.pid,
                "groups": [f"{folder}/{lab.name}.{node.name}" for folder in keeper.record["folders"]],
                "underlay": None if node.name == MIDDLE else str(lab.address(node.name)),
                "overlay": str(tunnel.address[node.name]) if tunnel and node.name in tunnel.address else None,
            }
            for node in (*lab.nodes.values(), lab.middle)
        },
        "timings": timings,
    }


def _say(content: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        asyncio.run(hold(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None))
    except TunnelmarkError as error:
        _say({"error": error.message, "hint": error.hint})
        sys.exit(error.exit_code)
