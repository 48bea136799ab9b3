"""Has the functions `facts` and `held`, which a command's process on another host (`lab.ssh.relay`) calls."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli import block_run, measurement_lock, measuring
from tunnelmark.cluster.tasks import study_of
from tunnelmark.errors import LabError
from tunnelmark.host.clock_discipline import clock_discipline
from tunnelmark.plan.load import write_inputs
from tunnelmark.plan.order import order
from tunnelmark.record import environment
from tunnelmark.run import assets
from tunnelmark.run.runner import RunContext


def facts(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the environment in which this host would measure a study, after making the files that the workloads need.

    `asked`: the study, as a mapping with the fields of `cluster.tasks.BlockTask`. MissingPart if the host lacks a part
    without which the study cannot be measured.
    """
    with tempfile.TemporaryDirectory(prefix="tunnelmark-study-") as folder:
        write_inputs(asked["inputs"], Path(folder))
        study = study_of(asked, Path(folder), registry.catalogue())
    console = Console(file=sys.stderr)  # standard output carries frames
    captured = block_run.facts(study, asked, console)
    context = RunContext(registry.vpns(), registry.workloads(), environment.socket_buffer_limit())
    measuring.prepare(order(study), context, console, held=True)  # the relay holds the lock while it serves
    return {**captured, "socket_buffer": context.socket_buffer, "clock": asdict(clock_discipline())}


@contextmanager
def held() -> Iterator[None]:
    """Hold this host's measurement lock until the body of the `with` statement ends.

    Then programs that still make files for workloads are killed. LabError if another command measures on this host.
    """
    if (other := measurement_lock.measuring()) is not None:
        raise LabError(f"another command measures there: {other.what}", hint="wait for its end, or stop it")
    with measurement_lock.alone(Console(file=sys.stderr), "a command on several hosts"):
        try:
            yield
        finally:
            assets.give_up()
