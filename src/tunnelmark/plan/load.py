"""Loads plan files: a study with everything that it names, checked so that later stages trust it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from tunnelmark.errors import PlanError, UnknownName, UsageError, nearest
from tunnelmark.plan import auto, study_length
from tunnelmark.plan.auto import Fixed
from tunnelmark.plan.catalogue import Catalogue
from tunnelmark.plan.design import AXES, NOTHING, Names
from tunnelmark.plan.enough import Enough, enough_of
from tunnelmark.plan.files import FOLDERS, FileKind, Files, elsewhere, read_text
from tunnelmark.plan.lengths import meet_cuts, open_lengths
from tunnelmark.plan.load_shares import have_rates, shares
from tunnelmark.plan.model import TO, Profile, Study, Topology, WorkloadUse
from tunnelmark.plan.problems import Location, Problems, checked, parse, unique
from tunnelmark.plan.profiles import JOIN, Source, parse_profile
from tunnelmark.plan.routers import ALL_KINDS
from tunnelmark.plan.routes import crossed
from tunnelmark.plan.study_arms import arms_of, on_chains
from tunnelmark.plan.study_cells import design_of, distinct, part_of
from tunnelmark.plan.study_length import StudyLength
from tunnelmark.plan.study_schema import StudyFile, StudyTable, UseTable
from tunnelmark.plan.sysctls import sysctls_of
from tunnelmark.plan.topologies import as_shown, parse_topology, parts_of

STACKS = "stacks"
"""The collector that `profile_stacks = true` adds to a study."""

REPLACED = 5
"""A study that states no `replacements` may have one replacement block for each so many blocks (rounded up)."""


def load_study(
    name_or_path: str,
    files: Files,
    catalogue: Catalogue,
    *,
    blocks: int | None = None,
    seed: int | None = None,
    smoke: bool = False,
    full: bool = False,
    watch: Sequence[str] | None = None,
    grows: bool = True,
    only: Names = NOTHING,
) -> Study:
    """Return the study of that name or path.

    `blocks`, `seed` and `watch` replace those of the file. `smoke` and `full` choose the short and the long length.
    `grows`: whether a run may add blocks if the file asks for a precision or has a time budget; False: the study has a
    fixed number of blocks.
    `only`: by axis (`design.AXES`), the names that are measured; all names of an axis that `only` lacks are measured.
    The bare link, the anchor and an A/A pair stay in any case.

    UnknownName if a name does not exist, PlanError (with every problem of the file) if the file cannot be used,
    UsageError if an argument cannot be used.
    """
    path = files.find_study(name_or_path)
    parse_ = partial(
        parse_study,
        file=str(path),
        files=files,
        catalogue=catalogue,
        blocks=blocks,
        seed=seed,
        smoke=smoke,
        full=full,
        watch=watch,
        grows=grows,
    )
    text = read_text(path)
    whole = parse_(text)
    return parse_(text + part_of(whole, only)) if only else whole


def parse_study(
    text: str,
    file: str,
    files: Files,
    catalogue: Catalogue,
    *,
    blocks: int | None = None,
    seed: int | None = None,
    smoke: bool = False,
    full: bool = False,
    watch: Sequence[str] | None = None,
    grows: bool = True,
) -> Study:
    """Return the study that the text states, as `load_study` does; `file` is its name in errors."""
    if blocks is not None and blocks < 1:
        raise UsageError(f"a study cannot have {blocks} blocks", hint="ask for one block or more")
    if seed is not None and seed < 0:
        raise UsageError(f"{seed} cannot be a seed", hint="a seed is a whole number from 0 on")
    content = parse(text, file, StudyFile)
    length = study_length.length_of(content, smoke=smoke, full=full)
    problems = Problems(file)
    table = content.study
    settings = sysctls_of(table.sysctls, ("study", "sysctls"), problems)
    arms = arms_of(content.arm, catalogue, settings, table.inner, problems)
    # Every length is checked, not only the one that is asked for.
    by_length = {each: _uses(content.workload, catalogue, problems, each) for each in study_length.LENGTHS}
    arms, uses = study_length.taking_part(content, length, arms, by_length[length], problems)
    for each in study_length.LENGTHS:
        _known(study_length.profiles(content, each), "profile", files, problems)
    profile_names = study_length.profiles(content, length)
    topology_names = [as_shown(files.current("topology", name)) for name in table.topologies]
    _known(topology_names, "topology", files, problems)
    design, used = design_of(content, arms, uses, profile_names, topology_names, problems)
    arms = tuple(arm for arm in arms if arm.name in used["arms"])
    uses = tuple(use for use in uses if use.name in used["workloads"])
    if table.replacements and (table.precision is not None or table.time_budget is not None):
        told = "there are none where blocks are added until enough is known"
        problems.add(("study", "replacements"), told, "leave it out: blocks are added as long as pairs lack")
    watched = _watched(table.watch, catalogue, problems)
    if table.profile_stacks and STACKS not in watched:
        watched = (*watched, STACKS)
    problems.raise_if_any()
    count = study_length.blocks(content, length) if blocks is None else blocks
    enough = _enough(table, count, problems) if grows and not smoke else None
    replaced = -(-count // REPLACED) if enough is None else 0  # otherwise blocks are added as long as pairs are missing
    fixed = files.fixed()
    # Also those that no cell uses: the file names them for other lengths, or for cells that are left out.
    named = dict.fromkeys(name for each in study_length.LENGTHS for name in study_length.profiles(content, each))
    sources = {name: _sources(name, files) for name in named}
    by_name = {name: load_topology(name, files) for name in topology_names}
    profiles = [parse_profile(sources[name], fixed.get(name)) for name in used["profiles"]]
    topologies = [by_name[name] for name in used["topologies"]]
    inputs = {f"{FOLDERS['study']}/{table.name}.toml": text}
    for texts in sources.values():
        inputs |= _profile_inputs(texts)
    for topology in by_name.values():
        inputs |= _topology_inputs(topology, files)
    if kept := {name: fixed[name] for name in used["profiles"] if name in fixed}:
        inputs[auto.FILE] = auto.write(kept)
    distinct(arms, profiles, topologies, uses, problems)

    def measured(**only: str) -> bool:
        return design.has_any(*((only[axis],) if axis in only else used[axis] for axis in AXES))

    on_chains(
        [
            (place, arm, topology)
            for (place, arm), topology in product(enumerate(arms), topologies)
            if measured(arms=arm.name, topologies=topology.name)
        ],
        problems,
    )
    over = [
        (place, use, profile)
        for (place, use), profile in product(enumerate(uses), profiles)
        if measured(workloads=use.name, profiles=profile.name)
    ]
    have_rates(over, problems)
    if not smoke:  # a short run only shows whether the study works
        meet_cuts(over, count, problems)
    for place, use, profile in over:  # durations that a path makes longer must still be valid
        for topology in topologies if use.lengths else ():
            long = use.over(profile, crossed(topology, profile))
            checked(long.options, catalogue.workloads[use.workload], ("workload", place), use.name, problems)
    problems.raise_if_any()
    return Study(
        name=table.name,
        title=table.title,
        description=table.description,
        seed=table.seed if seed is None else seed,
        blocks=count,
        ready_timeout=table.ready_timeout,
        arms=arms,
        profiles=tuple(profiles),
        topologies=tuple(topologies),
        workloads=uses,
        text=text,
        inputs=inputs,
        smoke=smoke,
        full=full,
        watch=watched if watch is None else tuple(watch),
        attempts=table.attempts,
        replacements=replaced if table.replacements is None else table.replacements,
        cores=table.cores,
        enough=enough,
        design=design,
    )


def fix(study: Study, rates: Mapping[str, Fixed]) -> Study:
    """Return the study with `rates` (by profile) in place of each `rate = "auto"`. Its inputs then hold these rates."""
    profiles = []
    for profile in study.profiles:
        if profile.auto is not None and profile.name in rates:
            texts = {part: f"{FOLDERS['profile']}/{part}.toml" for part in profile.name.split(JOIN)}
            sources = [Source(part, place, study.inputs[place]) for part, place in texts.items()]
            profiles.append(parse_profile(sources, rates[profile.name]))
        else:
            profiles.append(profile)
    before = auto.read(study.inputs[auto.FILE], auto.FILE) if auto.FILE in study.inputs else {}
    used = before | {profile.name: rates[profile.name] for profile in study.profiles if profile.name in rates}
    inputs = dict(study.inputs) | ({auto.FILE: auto.write(used)} if used else {})
    return replace(study, profiles=tuple(profiles), inputs=inputs)


def save_inputs(study: Study, folder: Path) -> None:
    """Write the study's file and the profile and topology files it uses below `folder`.

    A study that is loaded from there (`Files((folder,))`, with the same `blocks` and `seed` if they were given)
    equals this one, even if the original files have changed since. OSError if they cannot be written.
    """
    write_inputs(study.inputs, folder)


def write_inputs(inputs: Mapping[str, str], folder: Path) -> None:
    """Write plan files (text by path) below `folder`; OSError if they cannot be written."""
    for place, text in inputs.items():
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def load_profile(name: str, files: Files, fixed: Fixed | None = None) -> Profile:
    """Return the profile of that name, or of several names joined by `+`.

    `fixed`: the rate for `rate = "auto"`; None: the rate that was fixed in a folder of `files`, if there is one.
    UnknownName or PlanError if the profile cannot be used.
    """
    return parse_profile(_sources(name, files), fixed or files.fixed().get(name))


def link_inputs(profile: str, topology: str, files: Files) -> dict[str, str]:
    """Return the texts of the files that a profile and a topology are made from, by path as in `Study.inputs`.

    `profile`, `topology`: names, which may be joined by `+`. Profiles that links of the topology have of their own are
    included. UnknownName or PlanError if a name cannot be used.
    """
    return _profile_inputs(_sources(profile, files)) | _topology_inputs(load_topology(topology, files), files)


def _profile_inputs(sources: Sequence[Source]) -> dict[str, str]:
    return {f"{FOLDERS['profile']}/{source.name}.toml": source.text for source in sources}


def _topology_inputs(topology: Topology, files: Files) -> dict[str, str]:
    """Return the texts, by path, of the topology's file and of the profiles that its links have of their own."""
    own, *_ = topology.name.split(JOIN)
    inputs = {f"{FOLDERS['topology']}/{own}.toml": read_text(files.find("topology", own))}
    for link in topology.links:
        if link.profile is not None:
            inputs |= _profile_inputs(_sources(link.profile.name, files))
    return inputs


def _sources(name: str, files: Files) -> list[Source]:
    paths = {part: files.find("profile", part) for part in name.split(JOIN)}
    return [Source(part, str(path), read_text(path)) for part, path in paths.items()]


def load_topology(name: str, files: Files) -> Topology:
    """Return the topology of that name; kinds of routers and ends of the traffic (`a-to-b`) may be joined to it by `+`.

    UnknownName or PlanError if it cannot be used.
    """
    own, kinds, ends = parts_of(name)
    path = files.find("topology", own)
    made = parse_topology(read_text(path), own, str(path), lambda profile: load_profile(profile, files))
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise UnknownName("kind of router", kind, ALL_KINDS)
    try:
        made = made.of_kinds(kinds) if kinds else made
    except ValueError as error:
        raise PlanError(name, "", str(error), hint="name one kind for all of them, or one for each") from error
    try:
        for part in ends:
            made = made.between(*part.split(TO, 1))
    except ValueError as error:
        raise PlanError(name, "", str(error), hint=f"name two of {', '.join(made.nodes)}, such as a{TO}b") from error
    return made


def _uses(
    tables: list[UseTable], catalogue: Catalogue, problems: Problems, length: StudyLength
) -> tuple[WorkloadUse, ...]:
    """Return the workloads of a study in that length. Those with a problem are left out, and the problem is noted."""
    uses = []
    for index, table in enumerate(tables):
        if table.workload not in catalogue.workloads:
            problems.add(
                ("workload", index, "workload"),
                f"there is no workload called {table.workload!r}",
                nearest(table.workload, catalogue.workloads),
            )
            continue
        name = table.workload if table.name is None else table.name
        options = study_length.options(table, length)
        if made := checked(options, catalogue.workloads[table.workload], ("workload", index), name, problems):
            uses.append(WorkloadUse(name, table.workload, options, shares(made), open_lengths(made)))
    unique([table.name or table.workload for table in tables], ("workload",), problems, field="name")
    return tuple(uses)


def _enough(table: StudyTable, count: int, problems: Problems) -> Enough | None:
    """Return when a run of `count` blocks or more has enough; None if their number is fixed. PlanError if invalid."""
    try:
        return enough_of(count, table.max_blocks, table.precision, table.time_budget)
    except ValueError as error:
        problems.add(
            ("study", "max_blocks" if table.precision is None else "precision"), str(error), "change one of them"
        )
        problems.raise_if_any()
        return None


def _watched(names: list[str] | None, catalogue: Catalogue, problems: Problems) -> tuple[str, ...]:
    """Return the collectors of every trial: those that the study names, or the light ones if it names none."""
    if names is None:
        return catalogue.light
    unique(names, ("study", "watch"), problems)
    for place, name in enumerate(names):
        if name not in catalogue.collectors:
            problems.add(
                ("study", "watch", place), f"there is no collector called {name!r}", nearest(name, catalogue.collectors)
            )
    return tuple(names)


def _known(names: list[str], kind: FileKind, files: Files, problems: Problems) -> None:
    """Note names that no file has, and names that occur twice."""
    key: Location = ("study", FOLDERS[kind])
    unique(names, key, problems)
    known = files.names(kind)
    for place, name in enumerate(names):
        for part in name.split(JOIN) if kind == "profile" else name.split(JOIN)[:1]:
            if part not in known:
                problems.add((*key, place), f"there is no {kind} called {part!r}", elsewhere(kind, part, known))
