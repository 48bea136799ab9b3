"""Carries out, inside a virtual machine, the study or the link check that `vm` asks for.

`python -m tunnelmark.cli.vm_guest FOLDER` starts it. FOLDER has `request.json` and gets `answer.json`, or `error.json`
instead. Raw output is written to the guest's memory and moved to the results when a trial has ended: a program
must not wait for the host's disk in the middle of a measurement.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli.core_options import OPTION
from tunnelmark.errors import TunnelmarkError, plain
from tunnelmark.host.keep_awake import COUNTED, VARIABLE
from tunnelmark.lab.vm import clock_keepalive
from tunnelmark.plan.enough import Enough
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_study, load_topology
from tunnelmark.plan.order import order
from tunnelmark.record import environment
from tunnelmark.run.runner import RunContext

_SCRATCH = Path("/run/tunnelmark-raw")  # a tmpfs of the guest


def main(place: Path) -> int:
    """Carry out the request in the folder. Return the exit code: 0 if there is an answer."""
    asked = json.loads((place / "request.json").read_text())
    sys.argv[1:] = asked["command"]  # the recorded environment has it
    if OPTION in asked["command"]:
        os.environ[VARIABLE] = "1"
    if asked["guest"]["hardware"]["virtual_clock"]:
        os.environ[COUNTED] = "1"
        clock_keepalive.ClockLoop(asked["guest"]["hardware"]["instruction_ns"])
        clock_keepalive.forward_first()
        time.clock_settime(time.CLOCK_REALTIME, asked["time"])  # it ran ahead while the guest booted
    _SCRATCH.mkdir()
    try:
        answer = {"study": _study, "link-check": _check_link}[asked["kind"]](asked, place)
    except TunnelmarkError as error:
        (place / "error.json").write_text(json.dumps(plain(error)))
        return error.exit_code
    (place / "answer.json").write_text(json.dumps({**answer, "guest": asked["guest"]}))
    return 0


def _study(asked: Mapping[str, Any], place: Path) -> dict[str, Any]:
    from tunnelmark.cli import link_capacities
    from tunnelmark.cli.measuring import measure, prepare, require
    from tunnelmark.cli.progress_views import GuestView

    files = Files((place / "inputs",))
    lengths = {key: asked[key] for key in ("blocks", "seed", "smoke", "full", "watch")}
    study = load_study(asked["study"], files, registry.catalogue(), grows=False, **lengths)
    enough = TypeAdapter(Enough).validate_python(asked["enough"]) if asked["enough"] else None
    study = replace(study, attempts=asked["attempts"], replacements=asked["replacements"], enough=enough)
    plan, console = order(study), Console(highlight=False)
    context = RunContext(registry.vpns(), registry.workloads(), environment.socket_buffer_limit(), alone=True)
    require(plan, context, console)
    prepare(plan, context, console)
    study, measured = link_capacities.before(study, context, console, look=False)
    plan = order(study)
    if asked["only"] is not None:
        plan = plan.of_block(asked["only"])
    folder, more = Path(asked["folder"]), {"guest": asked["guest"], "measured": measured}
    view = GuestView(sys.stdout, ratios=asked["ratios"])
    asyncio.run(measure(plan, context, folder, asked["resuming"], console, view, scratch=_SCRATCH, wait=False, **more))
    return {}


def _check_link(asked: Mapping[str, Any], place: Path) -> dict[str, Any]:
    from tunnelmark.cli import link_capacities, run_links
    from tunnelmark.cli.link_command import verify
    from tunnelmark.record.store import move

    files = Files((place / "inputs",))
    profile, topology = load_profile(asked["profile"], files), load_topology(asked["topology"], files)
    run_links.require([profile])
    profile = link_capacities.closed_now(profile, topology, files)
    raw = _SCRATCH / "link-check"
    check = asyncio.run(verify(topology, profile, asked["probes"], asked["rate"], asked["seed"], raw))
    for file in raw.iterdir():
        move(file, Path(asked["folder"]))
    return {"check": asdict(check)}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
