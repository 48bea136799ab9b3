"""One wire packet of ten is lost: every workload ends within its bound, with a result or with its reason, and the study goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run, settled, small_study
from tunnelmark import registry
from tunnelmark.errors import MissingPart
from tunnelmark.host import programs
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.routes import crossed
from tunnelmark.workloads.base import Endpoints

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.proof(
        "every workload ends within its bound where one wire packet of ten is lost, with a result or its reason"
    ),
]

SHORT = {
    "churn": 'duration = "12 s", every = "4 s", outage = "500 ms", recover = "3500 ms"',
    "connect": 'event = "link-flap", outage = "500 ms", duration = "3 s"',
    "http": 'duration = "2 s"',
    "idle": 'duration = "1 s"',
    "kube-api": "requests = 20",
    "latency": 'load = ["0 %"], duration = "1 s"',
    "nix": 'paths = 5, size = "2 MB"',
    "quic": 'duration = "2 s"',
    "udp-search": "sizes = [512]",
    "video": 'duration = "3 s"',
}
AROUND = 40.0  # seconds that lab, start of servers and their end may take beside a workload's own bound


def test_every_workload_ends_in_time(tmp_path: Path) -> None:
    uses = []
    for name, workload in registry.workloads().items():
        try:
            programs.require(workload.part)
        except MissingPart:
            continue
        uses.append(f'[[workload]]\nname = "w-{name}"\nworkload = "{name}"\noptions = {{ {SHORT.get(name, "")} }}\n')
    assert len(uses) > 8, "most workloads are not installed here"
    study = small_study(tmp_path, profile="edge-loss-10+fast-ethernet")
    study.write_text(study.read_text() + "\n" + "\n".join(uses))
    loaded = load_study(str(study), Files.standard(), registry.catalogue())
    (profile,), (topology,) = loaded.profiles, loaded.topologies
    asked = {use.name: use.over(profile, crossed(topology, profile)).options for use in loaded.workloads}
    done = run("run", study, "--out", tmp_path / "results", path=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    trials = [trial for trial in settled(tmp_path / "results") if trial["workload"].startswith("w-")]
    assert len(trials) == 2 * len(uses)
    for trial in trials:
        workload = registry.workload(trial["workload"].removeprefix("w-"))
        bound = workload.traffic(
            Endpoints.between("a", "b"), workload.options.model_validate(asked[trial["workload"]])
        ).timeout
        assert sum(trial["phases"].values()) < bound + AROUND, trial["workload"]
        assert trial["outcome"] == "ok" or (trial["reason"] and trial["message"] and trial["hint"]), trial["workload"]
