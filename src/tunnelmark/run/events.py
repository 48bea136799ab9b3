"""What is done to a deployment while a trial runs, and when: restarts, link flaps, changes of address."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

from tunnelmark.lab.lab import Lab
from tunnelmark.run.deploy import Tunnel
from tunnelmark.workloads.base import Event


async def happen(lab: Lab, tunnel: Tunnel, events: Sequence[Event], file: Path) -> None:
    """Do each event at its time from now on, and append to the file what was done and when.

    A line is a JSON object: `kind`, `node`, and `begun` and `ended` in seconds of CLOCK_MONOTONIC, the clock of every
    node.
    """
    start = time.monotonic()
    for event in sorted(events, key=lambda event: event.at):
        await asyncio.sleep(max(0.0, start + event.at - time.monotonic()))
        begun = time.monotonic()
        await _do(lab, tunnel, event)
        with file.open("a") as record:
            json.dump({"kind": event.kind, "node": event.node, "begun": begun, "ended": time.monotonic()}, record)
            record.write("\n")


async def _do(lab: Lab, tunnel: Tunnel, event: Event) -> None:
    match event.kind:
        case "restart":
            await tunnel.restart(event.node)
        case other:
            raise NotImplementedError(other)
