"""Workloads in trouble: each trial fails with its reason and its output within a stated bound, and the study goes on."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from support.command import journal, run, small_study

pytestmark = pytest.mark.root

# Real programs in trouble; the metrics are of no matter.
TROUBLED = """
from tunnelmark.errors import OutputUnreadable
from tunnelmark.model.options import Options
from tunnelmark.model.steps import TcpPort
from tunnelmark.workloads.base import Metric, Program, Reading, Sample, Traffic, Workload


def traffic(ends, options):
    servers = {servers}
    client = Program("client", ends.source, {client})
    return Traffic(servers=servers, client=client, window=0.1, warmup=0.0, timeout=2.0, extra_clients={beside})


def read(outputs, options):
    try:
        value = float(outputs["client"])
    except ValueError:
        raise OutputUnreadable("client printed no number", hint="see the raw output") from None
    return Reading((Sample("number", value),), 0.1, 0.0)


WORKLOAD = Workload(
    name="{name}",
    title="In trouble",
    metrics=(Metric("number", "", "a number", "higher", primary=True, feels="counts"),),
    traffic=traffic,
    read=read,
    programs={programs},
    packages=("no-such-package",),
)
"""

NEVER_LISTENS = 'Program("server", ends.target, ("sleep", "60"), ready=TcpPort(9), ready_timeout=1.0)'
_NO_DISK = "echo the disk is missing >&2; exit 3"
ENDS_AT_ONCE = f'Program("server", ends.target, ("sh", "-c", "{_NO_DISK}"), ready=TcpPort(9), ready_timeout=5.0)'
STAYS_ON = 'Program("server", ends.target, ("sleep", "60"), ready_timeout=1.0)'


def workload(
    folder: Path,
    name: str,
    *,
    server: str = "",
    beside: str = "",
    client: tuple[str, ...] = ("echo", "1"),
    programs: tuple[str, ...] = ("sleep",),
) -> None:
    (folder / "workloads").mkdir(exist_ok=True)
    text = textwrap.dedent(TROUBLED).format(
        name=name,
        servers=f"({server},)" if server else "()",
        beside=f"({beside},)" if beside else "()",
        client=client,
        programs=programs,
    )
    (folder / "workloads" / f"{name.replace('-', '_')}.py").write_text(text)


def test_each_kind_of_trouble_has_its_reason_and_the_study_goes_on(tmp_path: Path) -> None:
    workload(tmp_path, "never-listens", server=NEVER_LISTENS)
    workload(tmp_path, "ends-at-once", server=ENDS_AT_ONCE)
    workload(tmp_path, "stays-on", server=STAYS_ON)
    workload(tmp_path, "hangs", client=("sleep", "60"))
    workload(tmp_path, "beside-hangs", beside='Program("other", ends.target, ("sleep", "60"), ready_timeout=1.0)')
    workload(tmp_path, "mumbles", client=("echo", "no number"))
    workload(tmp_path, "missing", programs=("no-such-program",))
    workload(tmp_path, "healthy")
    names = ("never-listens", "ends-at-once", "stays-on", "hangs", "beside-hangs", "mumbles", "missing", "healthy")
    study = small_study(tmp_path)
    study.write_text(study.read_text() + "".join(f'\n[[workload]]\nworkload = "{name}"\n' for name in names))
    done = run("run", study, "--out", tmp_path / "results", path=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "no-such-program is not installed" in done.stdout
    trials = {trial["workload"]: trial for trial in journal(tmp_path / "results") if trial["arm"] == "direct"}
    assert {name: (trials[name]["outcome"], trials[name]["reason"]) for name in names} == {
        "never-listens": ("failed", "workload-failed"),
        "ends-at-once": ("failed", "workload-failed"),
        "stays-on": ("failed", "workload-failed"),
        "hangs": ("failed", "workload-failed"),
        "beside-hangs": ("failed", "workload-failed"),
        "mumbles": ("failed", "output-unreadable"),
        "missing": ("failed", "missing-part"),
        "healthy": ("ok", None),
    }
    assert trials["ping"]["outcome"] == "ok"
    assert "never became ready" in trials["never-listens"]["message"]
    assert "ended with code 3: the disk is missing" in trials["ends-at-once"]["message"]
    assert "within 2 s" in trials["hangs"]["message"]
    assert "other did not end" in trials["beside-hangs"]["message"]
    for name in names:
        assert sum(trials[name]["phases"].values()) < 45, (
            name
        )  # of 1 or 2 s that it may take; what hangs does so for 60 s
        if name not in ("missing", "healthy"):
            assert trials[name]["hint"], name
            assert any("client" in file or "server" in file for file in trials[name]["raw"]), name
    assert "the disk is missing" in (tmp_path / "results" / "report.html").read_text()
