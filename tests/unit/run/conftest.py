"""An attempt at a trial on stand-ins, for tests of what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tunnelmark.lab.client import LabClient
from tunnelmark.model.attempt import Attempt
from tunnelmark.model.options import Options
from tunnelmark.plan.model import Arm, Trial, WorkloadUse
from tunnelmark.run import deploy
from tunnelmark.run.measurement import TrialSpec
from tunnelmark.run.trial import prepare
from unit.run.trial_stand_ins import DRIVER, FINE, PAIR, PROFILE, WORKLOAD, FakeLab, Labs, Node, Script, Try, Tunnel


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Try:
    """Makes an attempt at a trial, with what is different from one in which all is fine."""

    def one(
        *,
        lab: FakeLab | None = None,
        silent: bool = False,
        refuses: str = "",
        is_gone: bool = False,
        spec: Mapping[str, Any] | None = None,
        machine: Mapping[str, float] | None = None,
        again: str = "",
        **scripts: Script,
    ) -> Attempt:
        # The machine is a stand-in, too: /proc/stat counts in ticks, and one in a window as short as these is most of a core.
        monkeypatch.setattr("tunnelmark.run.interference.between", lambda *_, **__: dict(machine or {}))
        made = lab or FakeLab({})
        if not made.nodes:
            made.nodes = {name: Node(name, FINE | scripts) for name in ("a", "b")}
        monkeypatch.setattr(deploy, "prepare", lambda lab, driver, options, raw, **_: Tunnel(lab, raw, silent))
        trial = Trial(0, 1, Arm("made-up", "made-up"), PROFILE, PAIR, WorkloadUse("made-up", "made-up"))
        parts = replace(TrialSpec(DRIVER, Options(), WORKLOAD, Options(), 1.0, 212992), **(spec or {}))
        labs = cast(LabClient, Labs(made, refuses, is_gone))

        async def run() -> Attempt:
            return await (await prepare(labs, trial, parts, tmp_path / f"raw{again}")).measure()

        ended = asyncio.run(run())
        assert made.is_down or refuses, "the lab has ended"
        return ended

    return one
