"""Finds the flame graphs of a study, the raw files from which each is drawn, and the sums over their stacks.

A flame graph shows one arm in one setting on one side, with the stacks of all its successful trials. The names of the
kernel's functions show what the kernel did, and do not change with the VPN. What a program did is known only as far as
its functions have names.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.model.stack_kinds import KINDS, folded_stacks, kind
from tunnelmark.record.results import Results, TrialRow

FOLDER = "flames"
"""The folder of the graphs in a results folder."""

SIDES = {"source": "sender", "target": "receiver"}
_STACKS = re.compile(r"/watch\.stacks\.(source|target)\.folded$")
_COST = "/watch.cost.json"
_HOW = "watch.stacks.json"
_UNWINDING = {"fp": "by frame pointers", "dwarf": "by unwinding tables"}
_LEAST = 0.03  # the share of a side's samples from which on a program has its own row in the table
_SEEN = 0.01  # the share of a side's samples below which nothing is shown
_OTHERS = "others"


@dataclass(frozen=True, slots=True)
class FlameProgram:
    """A program's part in the samples of one side (the sender or the receiver).

    `share`: its share of all samples of the side, 0 to 1. `kinds`: this share split up by kind of work (see KINDS).
    """

    name: str
    share: float
    kinds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Flame:
    """One flame graph.

    `side`: `source` (the sender) or `target` (the receiver). `file`: the path of the picture. `folded`: the path of a
    file for each successful trial, with a line for each stack and how often it was seen. Paths are relative to the
    results folder. `samples`: how many were taken in these trials. `unnamed`: of the samples in which a program's own
    code ran, not the kernel, the share in which the innermost function has no name, 0 to 1. `drawn`: whether `file`
    exists.
    """

    arm: str
    setting: Scenario
    side: str
    file: str
    folded: tuple[str, ...]
    samples: int
    programs: tuple[FlameProgram, ...]
    unnamed: float
    drawn: bool
    unwinding: str = ""  # how callers were found, in words

    @property
    def title(self) -> str:
        """The graph's arm, side and setting, in one line."""
        place = f"{self.setting.workload}, {self.setting.profile}, {self.setting.topology}"
        return f"{self.arm}: {SIDES[self.side]} ({place})"

    @property
    def subtitle(self) -> str:
        """Samples and trials of the graph, how callers were found, and the share in functions without a name."""
        trials = "1 trial" if len(self.folded) == 1 else f"{len(self.folded)} trials"
        said = f"{self.samples} samples of {trials}" + (f", callers {self.unwinding}" if self.unwinding else "")
        if self.unnamed >= 0.01:
            said += f"; {100 * self.unnamed:.0f} % of what programs did themselves is in functions without a name"
        return said


@dataclass(frozen=True, slots=True)
class Flames:
    """All graphs of a study; `cost` is perf's own CPU time in seconds per trial (mean), None if it was not recorded."""

    all: tuple[Flame, ...] = ()
    cost: float | None = None
    refused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # trials without stacks, by the reason

    @property
    def settings(self) -> dict[Scenario, list[Flame]]:
        """The graphs by setting."""
        return {key: [one for one in self.all if one.setting == key] for key in {one.setting: None for one in self.all}}

    def of(self, arm: str, setting: Scenario) -> tuple[Flame, ...]:
        """Return the graphs of an arm in a setting, the sender's first; empty if no stacks were recorded."""
        return tuple(flame for flame in self.all if (flame.arm, flame.setting) == (arm, setting))


def flames(analysis: Analysis) -> Flames:
    """Return the graphs for which stacks were recorded, by workload, then in the order of the plan's arms."""
    return of_results(analysis.results)


def of_results(results: Results) -> Flames:
    """Return the graphs for which stacks were recorded, like `flames`, but from results that have not been analysed."""
    found: dict[tuple[str, Scenario, str], list[str]] = {}
    costs: list[float] = []
    refused: dict[str, list[str]] = {}
    for row in results.trials:
        if row.outcome != "ok":
            continue
        for path in row.raw:
            if match := _STACKS.search(path):
                found.setdefault((row.arm, Scenario(row.profile, row.topology, row.workload), match[1]), []).append(
                    path
                )
            elif path.endswith(_COST) and (cost := _cost(results.path / path)) is not None:
                costs.append(cost)
        if (why := _refused(row)) is not None:
            refused.setdefault(why, []).append(row.trial)
    order = [arm.name for arm in results.plan.arms]
    uses = [use.name for use in results.plan.workloads]
    keys = sorted(found, key=lambda key: (uses.index(key[1].workload), order.index(key[0]), key[2]))
    graphs = (_flame(results.path, key, tuple(sorted(found[key]))) for key in keys)
    return Flames(
        tuple(graph for graph in graphs if graph is not None),
        sum(costs) / len(costs) if costs else None,
        {why: tuple(trials) for why, trials in refused.items()},
    )


def recorded(results: Results) -> bool:
    """Return whether stacks were recorded in any trial."""
    return any(_STACKS.search(path) for row in results.trials for path in row.raw)


def _flame(home: Path, key: tuple[str, Scenario, str], folded: tuple[str, ...]) -> Flame | None:
    arm, setting, side = key
    file = f"{FOLDER}/{arm}.{setting.profile}.{setting.topology}.{setting.workload}.{side}.svg"
    stacks: Counter[str] = Counter()
    for path in folded:
        with suppress(OSError):  # the file may be gone
            stacks.update(folded_stacks((home / path).read_text(errors="replace")))
    total = stacks.total()
    if not total:
        return None
    programs: dict[str, Counter[str]] = {}
    own = nameless = 0
    for stack, count in stacks.items():
        name, _, frames = stack.partition(";")
        said = kind(frames)
        programs.setdefault(name, Counter())[said] += count
        if not stack.endswith("_[k]"):
            own += count
            nameless += count if stack.endswith("]") else 0
    return Flame(
        arm,
        setting,
        side,
        file,
        folded,
        total,
        tuple(_table(programs, total)),
        nameless / own if own else 0.0,
        (home / file).exists(),
        " or ".join(sorted({_unwinding((home / path).with_name(_HOW)) for path in folded} - {""})),
    )


def _table(programs: Mapping[str, Counter[str]], total: int) -> Iterator[FlameProgram]:
    """Yield programs by their share, the largest first, and at the end those below 3 % added up, if they reach 1 %."""
    small: Counter[str] = Counter()
    for name, kinds in sorted(programs.items(), key=lambda item: -item[1].total()):
        if kinds.total() < _LEAST * total:
            small.update(kinds)
        else:
            yield _program(name, kinds, total)
    if small.total() >= _SEEN * total:
        yield _program(_OTHERS, small, total)


def _program(name: str, kinds: Counter[str], total: int) -> FlameProgram:
    return FlameProgram(name, kinds.total() / total, {said: kinds[said] / total for said in KINDS})


def _cost(path: Path) -> float | None:
    """Return the CPU seconds of the recorder in one trial; None if the file cannot be read."""
    try:
        said = json.loads(path.read_text())
        return float(next(iter(said.values()))["stacks"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None


def _unwinding(path: Path) -> str:
    """Return in words how callers were found in one trial; "" if that is not recorded."""
    try:
        return _UNWINDING.get(json.loads(path.read_text())["unwinding"], "")
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _refused(row: TrialRow) -> str | None:
    return next((why for name, why in row.notes.items() if name.startswith("stacks")), None)
