"""A worker's process: measures one block of a study, or describes the environment in which it would measure it.

`python -m tunnelmark.cli.block_run FOLDER` starts it. FOLDER has `request.json` and the study's `inputs/`. The process
writes `results/` or `facts.json` there, or `error.json` instead.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli.progress_views import ProgressView
from tunnelmark.cluster.tasks import QEMU, study_of
from tunnelmark.cluster.worker import ERROR, FACTS, REQUEST, RESULTS
from tunnelmark.errors import MissingPart, TunnelmarkError, plain
from tunnelmark.host import privileges
from tunnelmark.lab.vm import host_support, kernel
from tunnelmark.plan.model import Plan, Study
from tunnelmark.plan.order import order
from tunnelmark.record import environment
from tunnelmark.run.runner import RunContext


def main(place: Path) -> int:
    """Carry out the request in the folder `place`. Return 0, or the error's exit code if `error.json` is written."""
    threading.Thread(target=_end_with_worker, daemon=True).start()
    asked = json.loads((place / REQUEST).read_text())
    sys.argv[1:] = asked["command"]  # the recorded environment has it
    try:
        study = study_of(asked, place / "inputs", registry.catalogue())
        if asked["number"] is None:
            (place / FACTS).write_text(json.dumps(facts(study, asked, _console())))
        else:
            _measure(study, asked, place / RESULTS)
    except TunnelmarkError as error:
        (place / ERROR).write_text(json.dumps(plain(error)))
        return error.exit_code
    return 0


def _end_with_worker() -> None:
    """Kill this process when the worker ends, which closes our input; its remains are removed as after any kill."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def facts(study: Study, asked: Mapping[str, Any], console: Console) -> Mapping[str, Any]:
    """Return this machine's environment as results record it, with every program that takes part; print warnings.

    `asked`: the request, a `cluster.tasks.BlockTask` as a mapping; only its `kernels` are used. MissingPart if so much
    is missing that nothing can be measured (see `measuring.require`), or if virtual machines are asked for and cannot
    run here.
    """
    from tunnelmark.cli.measuring import require

    plan, context, _ = _parts(study)
    if asked["kernels"]:
        support = host_support.look()
        if support.lacks:
            raise MissingPart("virtual machines cannot run here", hint=support.lacks)
        asyncio.run(kernel.fetch(asked["kernels"][0]))
    else:  # a virtual machine checks itself what it lacks
        privileges.require("the lab makes network namespaces")
        require(plan, context, console)
    parts = [context.part(arm) for arm in study.arms if context.missing(arm) is None]
    used = [context.workloads[use.workload].part for use in study.workloads]
    found = environment.capture(dict.fromkeys(parts), workloads=dict.fromkeys(used))
    return {**found, QEMU: support.qemu} if asked["kernels"] else found


def _measure(study: Study, asked: Mapping[str, Any], folder: Path) -> None:
    from tunnelmark.cli import link_capacities, vm
    from tunnelmark.cli.measurement_lock import alone
    from tunnelmark.cli.measuring import measure, prepare, require

    plan, context, console = _parts(study)
    number = asked["number"]
    if asked["kernels"]:
        kernel = asked["kernels"][0]
        # Clocks that count instructions on every worker make them one machine.
        vm.study(study, folder, kernel, console, ProgressView(), resuming=False, accelerator="tcg", only=number)
        return
    privileges.require("the lab makes network namespaces")
    require(plan, context, console)
    prepare(plan, context, console, wait=asked["wait"])
    with alone(console, f"block {number} of the study {study.name}"):
        study, measured = link_capacities.before(study, context, console, look=asked["measure"])
        block = order(study).of_block(number)
        ways = {"wait": asked["wait"], "sticks": asked["measure"], "measured": measured}
        asyncio.run(measure(block, context, folder, False, console, ProgressView(), **ways))


def _console() -> Console:
    return Console(highlight=False)


def _parts(study: Study) -> tuple[Plan, RunContext, Console]:
    context = RunContext(registry.vpns(), registry.workloads(), environment.socket_buffer_limit())
    return order(study), context, _console()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
