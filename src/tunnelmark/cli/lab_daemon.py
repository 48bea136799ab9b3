"""The process behind `tunnelmark lab up`: holds one lab until it is asked to end, or killed.

Started in a session of its own as `python -m tunnelmark.cli.lab_daemon NAME TOPOLOGY PROFILE [VPN]`. It prints
one JSON object on stdout when the lab is up (or why it is not), and keeps the same in a state file
through which `lab exec` and `lab down` find it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from typing import Any

from tunnelmark import registry
from tunnelmark.cli import lab_states, link_capacities, other_work
from tunnelmark.errors import TunnelmarkError
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import MIDDLE, Lab
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology
from tunnelmark.run.deploy import RunningDeployment, log_end, prepare

READY_TIMEOUT = 20.0  # seconds a VPN may take to answer in every direction


async def hold(name: str, topology: str, profile: str, vpn: str | None) -> None:
    """Bring the lab up, say so, and wait for SIGTERM or SIGINT."""
    files, profile = Files.standard().with_paths("profile", profile)
    files, topology = files.with_paths("topology", topology)
    state = lab_states.state_file(name)
    driver, options = registry.arm(vpn) if vpn else (None, None)
    what = load_topology(topology, files), load_profile(profile, files)
    logs, kept = lab_states.logs_of(name), lab_states.kept_logs(name)
    shutil.rmtree(kept, ignore_errors=True)
    begun = time.monotonic()
    async with LabClient(scratch=[state, logs]) as labs:
        timings = {"server": time.monotonic() - begun}
        what = what[0], await link_capacities.closed(labs, what[1], what[0])
        trial_run = await labs.up(*what)  # a lab made and ended, so that `--timings` can say both
        timings["gone"] = await trial_run.down()
        lab = await labs.up(*what)
        timings |= {"nodes": lab.timings.nodes, "links": lab.timings.links, "up": lab.timings.up}
        tunnel = prepare(lab, driver, options, logs, logs_are=f"in {kept}") if driver and options else None
        if tunnel is not None:
            logs.mkdir(parents=True, exist_ok=True)
            started = time.monotonic()
            try:
                await tunnel.start()
                await tunnel.answer(READY_TIMEOUT + (driver.start_of(len(what[0].nodes)) if driver else 0.0))
            except TunnelmarkError as error:
                logs.rename(kept)
                more = f"tunnelmark lab logs NODE{'' if name == lab_states.USUAL else f' --name {name}'}"
                raise type(error)(
                    f"{error.message}\n{log_end(kept)}",
                    hint=f"{error.hint}\n      the daemons' logs are kept in {kept}: `{more}` shows them",
                ) from error
            timings["vpn"] = time.monotonic() - started
        content = _state(name, what[0].name, what[1].name, vpn, lab, tunnel, labs, timings)
        lab_states.STATES.mkdir(mode=0o755, exist_ok=True)
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
    tunnel: RunningDeployment | None,
    labs: LabClient,
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
                "groups": [f"{folder}/{lab.name}.{node.name}" for folder in labs.record["folders"]],
                "underlay": None if node.name == MIDDLE else str(lab.address(node.name)),
                "overlay": str(tunnel.address[node.name]) if tunnel and node.name in tunnel.address else None,
            }
            for node in (*lab.nodes.values(), *lab.routers.values(), lab.middle)
        },
        "timings": timings,
    }


def _say(content: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        called, *made = sys.argv[1:]
        with other_work.told(f"the lab {called!r} ({', '.join(made)})"):
            asyncio.run(hold(called, made[0], made[1], made[2] if len(made) > 2 else None))
    except TunnelmarkError as error:
        _say({"error": error.message, "hint": error.hint})
        sys.exit(error.exit_code)
