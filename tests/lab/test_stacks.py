"""Stacks of a busy deployment: both ends, kernel and program, each by its name; and nothing is left of the recording."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from support.host import PATIENCE, Host, left_within
from support.labs import in_lab, shaped
from tunnelmark import registry
from tunnelmark.errors import LabError, MissingPart
from tunnelmark.host.programs import require
from tunnelmark.lab.labs import Lab
from tunnelmark.run.collectors import stacks
from tunnelmark.run.collectors.base import Collected
from tunnelmark.run.deploy import RunningDeployment, prepare
from tunnelmark.run.observed import observed

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(shutil.which("perf") is None, reason="needs perf (linux-perf)"),
]

_Result = TypeVar("_Result")

AMOUNT = "120M"
"""What two seconds carry on a quiet machine."""


def on(vpn: str, raw: Path, body: Callable[[Lab, RunningDeployment], Awaitable[_Result]]) -> _Result:
    """Run `body` on a deployment between `a` and `b` that carries traffic."""
    driver = registry.vpns()[vpn]
    try:
        stacks.require()
        require(driver.part(driver.options()))
    except MissingPart as missing:
        pytest.skip(missing.message)

    async def run(lab: Lab) -> _Result:
        tunnel = prepare(lab, driver, driver.options(), raw)
        await tunnel.start()
        await tunnel.answer(20)
        await tunnel.wait_converged(20)
        return await body(lab, tunnel)

    return in_lab(run, profile=shaped("500 Mbit/s"))


def recorded(vpn: str, raw: Path) -> tuple[Collected, dict[str, str]]:
    """What so much TCP looks like, by side: bytes, because a busy machine sends few of them in a time, and samples few stacks."""

    async def body(lab: Lab, tunnel: RunningDeployment) -> Collected:
        server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"], stdout=raw / "server")
        await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 5)
        sampler = stacks.COLLECTOR.watch(observed(lab, tunnel, "a", "b", raw))
        await sampler.begin()
        client = await lab.nodes["a"].spawn(
            ["iperf3", "-c", str(tunnel.address["b"]), "-n", AMOUNT], stdout=raw / "client"
        )
        assert (await client.wait()).code == 0
        await server.wait()
        return await sampler.end()

    seen = on(vpn, raw, body)
    assert not seen.notes
    return seen, {side: (raw / file).read_text() for side, file in stacks.FILES.items()}


def test_both_sides_with_the_names_of_the_kernel_and_of_a_stripped_go_program(tmp_path: Path):
    before = Host.now()
    seen, folded = recorded("wireguard-go", tmp_path)
    counted = {sample.metric: sample.value for sample in seen.samples}
    assert all(counted[f"stacks_{side}"] > 50 for side in folded), counted
    for side, text in folded.items():
        assert sum(int(line.rpartition(" ")[2]) for line in text.splitlines()) == counted[f"stacks_{side}"]
        daemon = [line for line in text.splitlines() if line.startswith("wireguard-go;")]
        assert any("wireguard/device.(*" in line for line in daemon), side
        assert any("tun_chr_write_iter_[k]" in line for line in daemon), side
        assert any("sys_sendm" in line or "sys_sendto" in line for line in daemon), side
    assert 0 < seen.cpu < 2
    assert {file.name for file in tmp_path.iterdir() if file.name.startswith("watch.")} == {
        *stacks.FILES.values(),
        "watch.stacks.json",
    }
    assert left_within(before) == {}


def test_a_program_without_frame_pointers_shows_who_called(tmp_path: Path):
    _, folded = recorded("tinc", tmp_path)
    for side, text in folded.items():
        daemon = [line for line in text.splitlines() if line.startswith("tincd;")]
        assert any("__libc_start_call_main;[tincd];" in line and "_[k]" in line for line in daemon), side
    assert any(";EVP_" in line for line in folded["source"].splitlines())
    assert json.loads((tmp_path / "watch.stacks.json").read_text())["unwinding"] == "dwarf"


def test_the_sides_are_apart(tmp_path: Path):
    _, folded = recorded("direct", tmp_path)
    assert "tcp_sendmsg_[k]" in folded["source"] and "tcp_recvmsg_[k]" in folded["target"]
    assert folded["source"].count("tcp_recvmsg_locked_[k]") < folded["target"].count("tcp_recvmsg_locked_[k]")


def test_what_perf_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Lab, "group", lambda *_: Path("tunnelmark-none", "lab1.a"))  # a group that is not there

    async def body(lab: Lab, tunnel: RunningDeployment) -> None:
        with pytest.raises(LabError, match=r"perf does not record: .*cgroup"):
            await stacks.COLLECTOR.watch(observed(lab, tunnel, "a", "b", tmp_path)).begin()

    on("direct", tmp_path, body)


_RECORDS = """
import asyncio, sys
from pathlib import Path
from support.labs import PAIR, UNSHAPED
from tunnelmark.lab.client import LabClient
from tunnelmark.run.collectors import stacks
from tunnelmark.run.collectors.base import CollectorContext, ObservedNode

async def main():
    async with LabClient() as labs, labs.lab(PAIR, UNSHAPED) as lab:
        nodes = {name: ObservedNode(node.pid, lab.group(name)) for name, node in lab.nodes.items()}
        sampler = stacks.COLLECTOR.watch(CollectorContext(nodes, "a", "b", Path(sys.argv[1])))
        await sampler.begin()
        print(sampler._perf.pid, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def test_perf_dies_with_the_command(tmp_path: Path):
    before = Host.now()
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", _RECORDS, tmp_path],
        env=os.environ | {"PYTHONPATH": tests},
        stdout=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        perf = int(command.stdout.readline())
        assert b"perf" in Path(f"/proc/{perf}/cmdline").read_bytes()
        pidfd = os.pidfd_open(perf)
        command.send_signal(signal.SIGKILL)
        assert select.select([pidfd], [], [], PATIENCE)[0], "perf goes on"
    assert left_within(before) == {}
