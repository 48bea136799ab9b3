"""A server for one client ends by itself, and is asked to only where that does not come: what it still prints stays whole."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.labs import PAIR, UNSHAPED, in_lab
from tunnelmark import registry
from tunnelmark.lab.labs import Lab
from tunnelmark.model.steps import LogMatch
from tunnelmark.run.deploy import deploy
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.workloads.base import Program, Traffic

pytestmark = pytest.mark.root
ASKED = "trap 'echo asked to end; exit' TERM; echo ready; "


@pytest.mark.parametrize(("grace", "printed"), [(20.0, "the report"), (0.0, "asked to end")])
def test_what_a_server_prints_within_its_grace_is_whole(grace: float, printed: str, tmp_path: Path) -> None:
    # It waits in the background for as long as the client's end takes to be seen, so that a signal is heard at once.
    words = f"{ASKED} sleep 1 & wait; echo the report"
    assert what_it_printed(words, grace, tmp_path) == ["ready", printed]


def test_one_that_waits_for_a_client_is_asked_to_end_after_its_grace(tmp_path: Path) -> None:
    begun = time.monotonic()
    assert what_it_printed(f"{ASKED} sleep 600 & wait", 0.2, tmp_path) == ["ready", "asked to end"]
    assert time.monotonic() - begun < 60


def what_it_printed(server: str, grace: float, folder: Path) -> list[str]:
    """The lines of a server whose client ends at once."""
    driver, none = registry.arm("direct")

    async def body(lab: Lab) -> list[str]:
        async with deploy(lab, driver, none, logs=folder, ready_timeout=10.0) as tunnel:
            ready = LogMatch("ready")
            one = Program("server", "b", ("sh", "-c", server), ready, long_running=True, grace=grace)
            traffic = Traffic((one,), Program("client", "a", ("true",)), window=1.0, warmup=0.0, timeout=30.0)
            stage = WorkloadRunner(lab, tunnel, traffic, folder)
            await stage.serve()
            await stage.drive()
            await stage.finish()
            return stage.outputs()["server"].splitlines()

    return in_lab(body, PAIR, UNSHAPED)
