"""Checks the cells of a study: their names exist, and each scenario has the bare link and an A/A pair."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import product

from tunnelmark.errors import UnknownName, UsageError, nearest
from tunnelmark.plan import study_length
from tunnelmark.plan.design import ALL, AXES, CellPattern, Design, Names
from tunnelmark.plan.model import Arm, Profile, Study, Topology, WorkloadUse
from tunnelmark.plan.problems import Location, Problems
from tunnelmark.plan.study_arms import ANCHOR, DIRECT
from tunnelmark.plan.study_schema import CellsTable, StudyFile
from tunnelmark.plan.topologies import as_shown


def design_of(
    content: StudyFile,
    arms: Sequence[Arm],
    uses: Sequence[WorkloadUse],
    profiles: Sequence[str],
    topologies: Sequence[str],
    problems: Problems,
) -> tuple[Design, Names]:
    """Return the design that a study's tables state, and, by axis (`design.AXES`), the names that have a measured cell.

    PlanError if a table names what the study does not have, or if any problem was noted before. A scenario that lacks
    the bare link or an A/A pair is noted in `problems`.
    """
    names = {
        "arms": [arm.name for arm in arms],
        "profiles": profiles,
        "topologies": topologies,
        "workloads": [use.name for use in uses],
    }
    if not (content.exclude or content.include or content.part):
        return ALL, names
    # A table may use names that only another length of the study has.
    every = {
        "arms": [each.name for each in content.arm],
        "profiles": [name for each in study_length.LENGTHS for name in study_length.profiles(content, each)],
        "topologies": topologies,
        "workloads": [each.name or each.workload for each in content.workload],
    }
    design = Design(
        tuple(_pattern(("exclude", n), table, every, problems) for n, table in enumerate(content.exclude)),
        tuple(_pattern(("include", n), table, every, problems) for n, table in enumerate(content.include)),
        CellPattern() if content.part is None else _pattern(("part",), content.part, every, problems),
    )
    if content.include and not content.exclude:
        problems.add(
            ("include",), "brings back nothing, for nothing is excluded", "add a table [[exclude]], or leave it out"
        )
    problems.raise_if_any()  # with a wrong name, the wrong cells would be left out
    return design, _used(design, names, arms, problems)


def _pattern(key: Location, table: CellsTable, names: Names, problems: Problems) -> CellPattern:
    stated = {axis: _shown(axis, getattr(table, axis)) for axis in AXES}
    for axis, chosen in stated.items():
        for place, name in enumerate(chosen):
            if name not in names[axis]:
                told = f"the study has no {AXES[axis]} called {name!r}"
                problems.add((*key, axis, place), told, nearest(name, names[axis]))
    if not any(stated.values()):
        hint = "state `arms`, `profiles`, `topologies` or `workloads`"
        problems.add(key, "names no cells, so that it means all of them", hint)
    return CellPattern(**stated)


def _shown(axis: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of an axis as they are in the names of cells."""
    return tuple(as_shown(name) for name in names) if axis == "topologies" else tuple(names)


def _used(design: Design, names: Names, arms: Sequence[Arm], problems: Problems) -> Names:
    """Return by axis the names that have a cell; note a scenario that lacks the bare link or an A/A pair."""
    cells = [cell for cell in product(*(names[axis] for axis in AXES)) if design.has(cell)]
    if not cells:
        problems.add(("exclude",), "leaves nothing to measure", "leave one of the tables out")
    by_setting: dict[tuple[str, ...], set[str]] = {}
    for arm, *setting in cells:
        by_setting.setdefault(tuple(setting), set()).add(arm)
    bare = {arm.name for arm in arms if arm.vpn == DIRECT and arm.same_as is None}
    pairs = [{arm.name, arm.same_as} for arm in arms if arm.same_as is not None]
    for setting_names, has in by_setting.items():
        if not bare & has:
            lacks = "has arms, and not the bare link with which they are compared"
        elif not any(pair <= has for pair in pairs):
            lacks = "has no two equal arms, which show how far those differ"
        else:
            continue
        hint = "leave it out for all arms, or keep those in it"
        problems.add(("exclude",), f"{' · '.join(setting_names)} {lacks}", hint)
        break
    return {axis: _with_cells(names[axis], (cell[place] for cell in cells)) for place, axis in enumerate(AXES)}


def _with_cells(names: Sequence[str], found: Iterable[str]) -> Sequence[str]:
    used = set(found)
    return [name for name in names if name in used]


def part_of(study: Study, only: Names) -> str:
    """Return the text of a table `[part]` that limits a study to the names in `only`. An axis without names is whole.

    The bare link, its twin, the anchor and an A/A pair stay in any case. UnknownName if the study does not have a name,
    UsageError if the study is a part already.
    """
    if study.design.part != CellPattern():
        raise UsageError(
            f"{study.name} is a part of a study, and no further part of it can be chosen",
            hint="choose the part from the whole study",
        )
    wanted = {axis: _shown(axis, names) for axis, names in only.items()}
    for axis, chosen in wanted.items():
        names = [each.name for each in getattr(study, axis)]
        for name in chosen:
            if name not in names:
                raise UnknownName(f"{AXES[axis]} in {study.name}", name, names)
    kept = {axis: list(chosen) for axis, chosen in wanted.items() if chosen}
    if "arms" in kept:
        bare = next((arm.name for arm in study.arms if arm.vpn == DIRECT and arm.same_as is None), DIRECT)
        stays = {*kept["arms"], bare, *(arm.name for arm in study.arms if arm.vpn == ANCHOR or arm.same_as == bare)}
        if not any(arm.name in stays and arm.same_as in stays for arm in study.arms):
            stays |= {name for arm in study.arms if arm.same_as is not None for name in (arm.name, arm.same_as)}
        kept["arms"] = [arm.name for arm in study.arms if arm.name in stays]
    stated = [f"{axis} = {json.dumps(names)}" for axis, names in kept.items()]  # TOML's lists are JSON's
    return "\n".join(("", "[part]", *stated, ""))


def distinct(
    arms: Sequence[Arm],
    profiles: Sequence[Profile],
    topologies: Sequence[Topology],
    uses: Sequence[WorkloadUse],
    problems: Problems,
) -> None:
    """Note in `problems` cells with equal names, by which trials are known; PlanError if any problem is noted.

    A cell's name is the names of its four parts, joined by dots. So `a` with `b.c` and `a.b` with `c` have equal names.
    """
    seen: set[str] = set()
    for parts in product(arms, profiles, topologies, uses):
        cell = ".".join(part.name for part in parts)
        if cell in seen:
            problems.add((), f"two cells would be called {cell!r}", "use fewer dots in names")
        seen.add(cell)
    problems.raise_if_any()
