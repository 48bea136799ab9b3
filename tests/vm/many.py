"""Runs inside a guest with several cores: where the work of a lab's parts was done while TCP passed its links, as JSON.

python -m vm.many SECONDS FOLDER
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from support.labs import PAIR, shaped
from tunnelmark import registry
from tunnelmark.host import cores
from tunnelmark.lab import labs
from tunnelmark.lab.client import LabClient
from tunnelmark.run.collection import Collection
from tunnelmark.run.collectors import collectors
from tunnelmark.run.deploy import deploy
from tunnelmark.run.observed import observed


def received() -> list[int]:
    """How often each core has done the work of receiving (NET_RX of /proc/softirqs)."""
    lines = Path("/proc/softirqs").read_text().splitlines()
    return [int(word) for line in lines if line.split()[0] == "NET_RX:" for word in line.split()[1:]]


async def look(seconds: float, raw: Path) -> dict[str, Any]:
    """What was seen of a lab in which one TCP stream passed."""
    driver, options = registry.arm("direct")
    before = sorted(os.sched_getaffinity(0))
    async with (
        LabClient() as held,
        held.lab(PAIR, shaped("20 Mbit/s"), raw=raw) as lab,
        deploy(lab, driver, options, logs=raw, ready_timeout=60) as tunnel,
    ):
        inside = {"command": sorted(os.sched_getaffinity(0)), "usable": sorted(cores.usable())}
        inside |= {name: sorted(os.sched_getaffinity(node.pid)) for name, node in lab.nodes.items()}
        inside["middle"] = sorted(os.sched_getaffinity(lab.middle.pid))
        server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
        await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 30)
        watching = Collection(observed(lab, tunnel, "a", "b", raw), [collectors()["cpu"]])
        rest = received()
        await watching.begin()
        argv = ["iperf3", "-t", str(round(seconds)), "-c", str(tunnel.address["b"])]
        done = await lab.nodes["a"].run(argv, timeout=seconds + 120)
        samples, busy = await watching.end(), received()
        await server.wait()
        assert done.code == 0, done.stdout + done.stderr
        placement, record = lab.placement.plain(), held.record
    return {
        "placement": placement,
        "record": record,
        "inside": inside,
        "restored": sorted(os.sched_getaffinity(0)) == before,
        "received": [after - first for first, after in zip(rest, busy, strict=True)],
        "values": {sample.metric: sample.value for sample in samples if sample.time is None},
        "notes": watching.notes,
    }


if __name__ == "__main__":
    labs._PATIENCE = 300.0  # several emulated cores have the host's clock, and are as slow as it is busy
    print(json.dumps(asyncio.run(look(float(sys.argv[1]), Path(sys.argv[2])))))
