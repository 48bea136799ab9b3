"""A client whose server has given up is not waited for until the trial's own end, and the trial says why."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from support.labs import PAIR, UNSHAPED, in_lab
from tunnelmark import registry
from tunnelmark.errors import TrialVoid
from tunnelmark.lab.labs import Lab
from tunnelmark.run.deploy import deploy
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.workloads.base import Endpoints

pytestmark = pytest.mark.root


@pytest.mark.parametrize("way", ["egress", "ingress"])
def test_iperf3_whose_opening_datagram_or_its_answer_is_lost(way: Literal["egress", "ingress"], tmp_path: Path) -> None:
    driver, none = registry.arm("direct")
    workload = registry.workload("udp")
    options = workload.options.model_validate({"duration": "4 s"})

    async def body(lab: Lab) -> None:
        async with deploy(lab, driver, none, logs=tmp_path, ready_timeout=10.0) as tunnel:
            at = tunnel.interface["a"]
            await lab.nodes["a"].run(["tc", "qdisc", "add", "dev", at, "clsact"])
            udp = ["protocol", "ip", "u32", "match", "ip", "protocol", "17", "0xff"]
            # This kernel may have no action `drop`; what enters lo from outside goes nowhere.
            away = ["action", "mirred", "egress", "redirect", "dev", "lo"]
            done = await lab.nodes["a"].run(["tc", "filter", "add", "dev", at, way, *udp, *away])
            assert done.code == 0, done.stderr
            ends = Endpoints("a", "b", tunnel.address["a"], tunnel.address["b"])
            stage = WorkloadRunner(lab, tunnel, workload.traffic(ends, options), tmp_path)
            await stage.serve()
            await stage.drive()  # which raises when its own time is up: iperf3's client would wait for 30 s
            await stage.finish()
            with pytest.raises(TrialVoid, match="never began"):
                workload.read(stage.outputs(), options)

    in_lab(body, PAIR, UNSHAPED)
