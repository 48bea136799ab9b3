"""What the relay on a host asks of the command line's side: what the host would measure a study with, and that nothing else measures there."""

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
    """What this host would measure a study with, and what the study needs beforehand made; the error that says what it lacks."""
    with tempfile.TemporaryDirectory(prefix="tunnelmark-study-") as folder:
        write_inputs(asked["inputs"], Path(folder))
        study = study_of(asked, Path(folder), registry.catalogue())
    console = Console(file=sys.stderr)  # standard output carries frames
    captured = block_run.facts(study, asked, console)
    context = RunContext(registry.vpns(), registry.workloads(), environment.socket_buffer_limit())
    measuring.prepare(order(study), context, console, held=True)  # by the relay, as long as it serves: `held`
    return {**captured, "socket_buffer": context.socket_buffer, "clock": asdict(clock_discipline())}


@contextmanager
def held() -> Iterator[None]:
    """No other command measures there meanwhile; at its end, nothing is made for this one any more. LabError if one does already."""
    if (other := measurement_lock.measuring()) is not None:
        raise LabError(f"another command measures there: {other.what}", hint="wait for its end, or stop it")
    with measurement_lock.alone(Console(file=sys.stderr), "a command on several hosts"):
        try:
            yield
        finally:
            assets.give_up()
