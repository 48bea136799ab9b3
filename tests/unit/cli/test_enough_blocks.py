"""A run adds blocks until it is precise, says so, and does the same again when it was killed at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from math import exp
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import numpy as np
import pytest
from rich.console import Console

from tunnelmark import registry
from tunnelmark.analyse import judge
from tunnelmark.cli.enough_blocks import Growth, until
from tunnelmark.cli.enough_options import asked
from tunnelmark.cli.run import _begun
from tunnelmark.errors import MissingPart, UsageError
from tunnelmark.lab.client import LabClient
from tunnelmark.model.attempt import Attempt
from tunnelmark.model.metrics import Sample
from tunnelmark.plan.enough import Enough, asking
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import parse_study
from tunnelmark.plan.model import Arm, Plan, Study, Trial, WorkloadUse
from tunnelmark.plan.order import order
from tunnelmark.record import describe, store
from tunnelmark.record.journal import Journal
from tunnelmark.record.results import JOURNAL, Results
from tunnelmark.run import runner
from tunnelmark.run.runner import RunContext, carry_out
from unit.study_text import study_text

TEXT = study_text("tinc", settings='seed = 5\nprecision = "4 %"\nmax_blocks = 24\nwatch = []')


class Killed(Exception):
    """Stands for a kill."""


class Complete(RunContext):
    """A machine on which nothing is missing."""

    def missing(self, arm: Arm) -> MissingPart | None:
        return None

    def lacks(self, use: WorkloadUse) -> MissingPart | None:
        return None


class Quiet:
    """A listener, and links that are as they say."""

    def begin(self, trial: Trial) -> None: ...
    def phase(self, trial: Trial, name: str) -> None: ...
    def end(self, attempt: Attempt) -> None: ...
    def block(self, attempts: Sequence[Attempt]) -> None: ...
    def more(self, trials: Sequence[Trial]) -> None: ...
    def longer(self, trials: Sequence[Trial]) -> None: ...
    def trouble(self, trial: Trial) -> str | None: ...
    async def again(self, trial: Trial) -> None: ...
    async def halfway(self) -> None: ...


@dataclass
class Made:
    """A trial whose goodput follows from its name."""

    trial: Trial
    number: int

    async def measure(self) -> Attempt:
        noise = np.random.default_rng(crc32(self.trial.id.encode())).normal(
            0, 0.06 if "tinc" in self.trial.id else 0.001
        )
        level = 4e8 if "tinc" in self.trial.id else 9e8
        samples = (Sample("goodput", level * exp(noise)), Sample("retransmits", 0.0))
        started = 1e9 + 3.0 * self.trial.position
        return Attempt(self.trial, "ok", "a>b", started, {"measure": 2.0}, samples, number=self.number)


def study() -> Study:
    return parse_study(TEXT, "mine.toml", Files.standard(), registry.catalogue())


def run(folder: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch, kill_after: int | None = None) -> str:
    """Carry a plan out as the command does, in a lab that only pretends; what it said. Killed after so many trials."""

    async def prepare(labs: object, trial: Trial, parts: object, raw: object, number: int) -> Made:
        return Made(trial, number)

    monkeypatch.setattr(runner, "prepare", prepare)
    context = Complete(registry.vpns(), registry.workloads(), 212992)
    describing = partial(describe.describe, drivers=context.drivers, workloads=context.workloads)
    if not folder.exists():
        store.create(folder, describing(plan), plan, {})
    text, quiet, begun = StringIO(), Quiet(), 0
    console = Console(file=text, width=500)

    async def calm() -> None: ...

    def ready() -> None:
        nonlocal begun
        if begun == kill_after:
            raise Killed
        begun += 1

    with Journal(folder / JOURNAL) as journal:
        journal.append({"begun": 1e9, "boot": "one"})
        asyncio.run(
            carry_out(
                plan,
                context,
                cast(LabClient, None),
                folder,
                tries=store.discard_unfinished(folder),
                ready=ready,
                keep=lambda attempt, workload: describe.keep(journal, attempt, workload),
                listener=quiet,
                links=quiet,
                calm=calm,
                more=Growth(folder, journal, console, describing),
            )
        )
        journal.append({"wall": 1.0})
    return text.getvalue()


def measured(found: Results) -> list[tuple[str, Any]]:
    return [(row.trial, row.samples) for row in found.trials]


def test_blocks_are_added_until_the_ratio_is_precise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run(tmp_path / "r", order(study()), monkeypatch)
    found = store.load(tmp_path / "r")
    assert found.finished
    assert found.decisions[-1].decided == "precise"
    assert found.plan.blocks == found.decisions[-1].blocks > 8
    assert found.plan.blocks % 4 == 0
    assert not found.plan.extended  # nobody asked for them
    cell = judge(found).cell("tinc", judge(found).settings()[0], "goodput").against_direct
    assert cell is not None
    assert cell.interval is not None
    assert cell.interval.high / cell.interval.low <= 1.04**2


def test_a_run_that_was_killed_at_any_moment_makes_the_same_trials_and_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run(tmp_path / "whole", order(study()), monkeypatch)
    whole = store.load(tmp_path / "whole")
    for kill in range(0, len(whole.trials), 5):
        folder = tmp_path / f"killed-{kill}"
        with pytest.raises(Killed):
            run(folder, order(study()), monkeypatch, kill)
        run(folder, order(_begun(folder, None)), monkeypatch)
        found = store.load(folder)
        assert measured(found) == measured(whole)
        assert found.plan == whole.plan
        assert [(one.blocks, one.decided, one.to) for one in found.decisions] == [
            (one.blocks, one.decided, one.to) for one in whole.decisions
        ]


def test_a_run_that_was_killed_between_its_decision_and_the_longer_plan_decides_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run(tmp_path / "whole", order(study()), monkeypatch)
    folder = tmp_path / "killed"

    def kill(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("tunnelmark.cli.enough_blocks.resumed.extend", kill)
        with pytest.raises(Killed):
            run(folder, order(study()), monkeypatch)
    run(folder, order(_begun(folder, None)), monkeypatch)
    assert measured(store.load(folder)) == measured(store.load(tmp_path / "whole"))


def test_a_finished_run_stays_as_it_is_and_gets_further_blocks_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "r"
    run(folder, order(study()), monkeypatch)
    before = store.load(folder)
    run(folder, order(_begun(folder, None)), monkeypatch)
    assert measured(store.load(folder)) == measured(before)
    assert store.load(folder).decisions == before.decisions
    again = _begun(folder, before.plan.blocks + 2)
    assert again.enough == before.plan.enough
    assert order(again).trials[: len(before.plan.trials)] == order(_begun(folder, None)).trials


def test_at_the_cap_it_ends_and_says_what_more_would_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    capped = asking(study(), precision=None, budget=None, most=9, blocks_stated=False)
    said = run(tmp_path / "r", order(capped), monkeypatch)
    found = store.load(tmp_path / "r")
    assert (found.plan.blocks, found.decisions[-1].decided) == (9, "cap")
    assert "after 8 blocks, go on: 1 of 1 ratios are not precise enough" in said
    assert "not yet precise: tinc to direct, tcp goodput, gigabit ±" in said
    assert "more blocks would do" in said
    assert "1 are left" in said


def test_when_it_ends_is_said_in_words():
    assert until(Enough(8, 40, 0.05)) == "each headline ratio is within 5 %, or there are 40 blocks; 8 blocks at least"
    assert until(Enough(8, 40, None, 1800.0)) == "30 min 00 s are over, or there are 40 blocks; 8 blocks at least"


def test_options_are_read_as_people_write_them():
    assert asked("5%", "30m", 20) == asked("5 %", "30 min", 20)
    assert asked(None, "2h", None).budget == 7200.0
    assert not asked(None, None, None)
    for precision, budget in (("5", None), (None, "half an hour")):
        with pytest.raises(UsageError):
            asked(precision, budget, None)
    with pytest.raises(UsageError, match="cannot be combined"):
        asked("5%", None, None).of(replace(study(), smoke=True, enough=None), blocks_stated=False)
