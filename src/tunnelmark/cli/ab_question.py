"""The question that `ab` asks: which change to find, by which metrics, with how many blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunnelmark.cli.enough_options import asked
from tunnelmark.errors import UnknownName, UsageError
from tunnelmark.plan.enough import MOST, Enough
from tunnelmark.plan.model import Study
from tunnelmark.record.describe import metrics
from tunnelmark.run.runner import RunContext
from tunnelmark.units import Share

CHANGE, COUNTED_CHANGE = "3 %", "1 %"
COUNTED_FLOOR = 6
"""Blocks before the first decision by counted time; with fewer, three intervals that hold together have no bounds."""

COUNTED_METRICS = ("cpu_per_gb_source", "cpu_per_gb_target")
"""Metrics that decide by counted time next to the primary ones: instructions for each byte."""


@dataclass(frozen=True, slots=True)
class AbQuestion:
    """The question of `ab`, as its options state it; None or () means that an option's default holds.

    `change` and `budget` are the texts of `--change` and `--time-budget` (None: no limit of time). `named`: the metrics
    that decide. `most`: the largest number of blocks. `counted`: whether the trials are measured in counted time.
    """

    change: str | None
    named: tuple[str, ...]
    most: int | None
    budget: str | None
    counted: bool

    def of(self, study: Study, context: RunContext) -> Study:
        """Return the study, which then adds blocks until this question is answered or a limit is reached.

        UsageError if an option's value cannot be used, UnknownName if a named metric is not measured.
        """
        text = self.change or (COUNTED_CHANGE if self.counted else CHANGE)
        try:
            change = Share.parse(text)
        except ValueError as error:
            raise UsageError(f"--change {text}: {error}", hint="such as 3%") from error
        if not 0.001 <= change <= 0.5:
            raise UsageError(f"--change {text} should be from 0.1 % to 50 %", hint="such as 3%")
        most = max(MOST, study.blocks) if self.most is None else self.most
        if most < study.blocks:
            raise UsageError(
                f"at most {most} blocks are less than the {study.blocks} before the first decision",
                hint=f"--max-blocks {study.blocks} or more",
            )
        if self.counted and self.budget is not None:
            raise UsageError(
                "--time-budget and --counted exclude each other: the clock of the guest counts instructions, not real seconds",
                hint="limit the run with --max-blocks N",
            )
        budget = asked(None, self.budget, None).budget
        decide = self._metrics(study, context)
        enough = Enough(study.blocks, most, None, None if budget is None else float(budget), float(change), decide)
        return replace(study, enough=enough, replacements=0)

    def _metrics(self, study: Study, context: RunContext) -> tuple[str, ...]:
        """Return the names of the metrics that decide; () means the primary ones."""
        known, primary = dict[str, None](), dict[str, None]()
        for use in study.workloads:
            workload = context.workloads[use.workload]
            own = workload.metrics_with(workload.options.model_validate(use.options))
            found = metrics(own, context.watching(study.watch, workload))
            known |= dict.fromkeys(metric.name for metric in found)
            primary |= dict.fromkeys(metric.name for metric in found if metric.primary)
        for name in self.named:
            if name not in known:
                raise UnknownName("metric", name, known)
        if self.named or not self.counted:
            return self.named
        return (*primary, *(name for name in COUNTED_METRICS if name in known))
