"""The command `ab`: compares two builds of a VPN until a stated change is found or excluded; exit codes are for CI."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click
from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli import collector_options as collectors
from tunnelmark.cli import (
    core_options,
    link_capacities,
    measurement_lock,
    other_work,
    output,
    param_types,
    retry_options,
    vm,
)
from tunnelmark.cli.ab_question import (
    CHANGE,
    COUNTED_CHANGE,
    COUNTED_FLOOR,
    AbQuestion,
)
from tunnelmark.cli.measuring import study_of
from tunnelmark.cli.report import show
from tunnelmark.cli.run_options import RunOptions
from tunnelmark.errors import StoreError, UsageError
from tunnelmark.packages.own_builds import SourceTree, own_programs
from tunnelmark.plan import composed_workloads
from tunnelmark.plan.catalogue import Catalogue
from tunnelmark.plan.compose import two_builds
from tunnelmark.plan.enough import FLOOR, MOST
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import parse_study
from tunnelmark.plan.model import Study
from tunnelmark.record.environment import socket_buffer_limit
from tunnelmark.run.runner import RunContext

PROFILE = "unshaped"
"""The profile if none is named. Its link has no rate: a slow one would hide how much processor time the builds cost."""

SLOWER, UNDECIDED = 1, 3
_CODES = {"slower": SLOWER, "undecided": UNDECIDED}


@click.command()
@click.argument("vpn", type=param_types.VPN)
@click.option(
    "--old",
    multiple=True,
    required=True,
    type=param_types.BUILD,
    metavar="BUILD",
    help="The build to compare with: a program's path (or NAME=PATH, repeatable), a recipe, or git:REV with --source.",
)
@click.option("--new", multiple=True, required=True, type=param_types.BUILD, metavar="BUILD", help="The new build.")
@click.option(
    "--source",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A git tree; each git:REV is checked out elsewhere and built there.",
)
@click.option(
    "--build", metavar="COMMAND", help="The shell command that builds a revision, in that folder of the tree."
)
@click.option(
    "--program",
    "made",
    multiple=True,
    metavar="PATH",
    help="Where in the tree the built program is (or NAME=PATH); repeatable.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=param_types.PROFILE,
    help=f"What the link does; repeatable [{PROFILE}: the processor is the limit].",
)
@param_types.once("--topology", default="pair", type=param_types.TOPOLOGY, help="Nodes and links: a name or a file.")
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    type=param_types.WORKLOAD,
    help="Kind of traffic; repeatable [tcp; with --counted udp, one datagram a millisecond].",
)
@click.option(
    "--change", metavar="PERCENT", help=f"The change to find or to exclude [{CHANGE}; with --counted {COUNTED_CHANGE}]."
)
@click.option(
    "--metric", "named", multiple=True, help="What decides; repeatable [the primary metrics of the workloads]."
)
@click.option(
    "--max-blocks",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Number of blocks at most [{MOST}].",
)
@click.option(
    "--time-budget", metavar="TIME", help="Add blocks only as long as they end within that time, such as 30m."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the trial order.")
@click.option(
    "--counted",
    is_flag=True,
    help="In a virtual machine whose clock counts instructions: nothing outside disturbs; how near that comes to 1 %: docs/ab.md. Not seen: cores, caches.",
)
@click.option(
    "--comment",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write a comment for a pull request there; - is stdout.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results [results/ab-TIME].")
@collectors.option
@core_options.option
@retry_options.options
@vm.options
@link_capacities.option
@click.option("--json", "json_", is_flag=True, help="Print the verdict as JSON, and everything else on stderr.")
@click.option("--dry-run", is_flag=True, help="Print the trials in order and their duration; build and run nothing.")
def ab(
    vpn: str,
    old: tuple[str, ...],
    new: tuple[str, ...],
    source: Path | None,
    build: str | None,
    made: tuple[str, ...],
    profiles: tuple[str, ...],
    topology: str,
    workloads: tuple[str, ...],
    change: str | None,
    named: tuple[str, ...],
    max_blocks: int | None,
    time_budget: str | None,
    seed: int,
    counted: bool,
    comment: Path | None,
    out: Path | None,
    watch: tuple[str, ...],
    profile_stacks: bool,
    no_repeat: bool,
    no_wait: bool,
    backend: str | None,
    kernels: tuple[str, ...],
    measure_first: bool,
    json_: bool,
    dry_run: bool,
) -> int:
    """Is the new build of VPN slower than the old one?

    Both are measured in the same blocks, and the old one twice, until a change of the stated size is found or excluded.

    Exit codes: 0 no slowdown of that size (or faster), 1 slower, 3 undecided, 2 wrong use or missing parts.
    """
    guests = _guests(counted, backend, kernels)
    if comment is not None and dry_run:
        raise UsageError("a dry run has nothing to comment on", hint="leave --comment or --dry-run out")
    if json_ and comment == Path("-"):
        raise UsageError("the comment and JSON cannot both be on stdout", hint="--comment FILE")
    tree = _tree(source, build, made, (*old, *new))
    driver, options = registry.arm(vpn)
    part = driver.part(options)
    quiet = json_ or comment == Path("-")
    console = output.console(stderr=quiet)
    with _building(console, wait=not no_wait) if tree is not None and not dry_run else nullcontext():
        chosen = [own_programs(each, part, tree, make=not dry_run) for each in (old, new)]
    files, catalogue = Files.standard(), registry.catalogue()
    links_of = []
    for profile in profiles or (PROFILE,):
        files, name = files.with_paths("profile", profile)
        links_of.append(name)
    files, topology = files.with_paths("topology", topology)
    composed = (
        composed_workloads.counted(workloads)
        if counted
        else composed_workloads.usual(workloads or ("tcp",), links_of, files)
    )
    text = two_builds(
        vpn,
        chosen[0].programs,
        chosen[1].programs,
        files,
        catalogue,
        labels=(chosen[0].label, chosen[1].label),
        profiles=links_of,
        topology=topology,
        workloads=composed,
        blocks=COUNTED_FLOOR if counted else FLOOR,
        seed=seed,
    )
    study = parse_study(text, "ab", files, catalogue, watch=_watched(watch, catalogue, counted=counted))
    study = collectors.with_stacks(study, profile_stacks)
    context = RunContext(registry.vpns(), registry.workloads(), socket_buffer_limit())
    study = AbQuestion(change, named, max_blocks, time_budget, counted).of(
        study.unrepeated if no_repeat else study, context
    )

    if not dry_run and not guests:  # a virtual machine checks itself what it lacks
        require(study, context)

    def answers(folder: Path, console: Console) -> int:
        return answer(folder, console, comment=comment, as_json=json_)

    ways = RunOptions(
        dry_run,
        quiet,
        guests,
        wait=not no_wait,
        measure_first=measure_first,
        answers=answers,
    )
    return study_of(study, out, ways)


@contextmanager
def _building(console: Console, *, wait: bool) -> Iterator[None]:
    """Announce a build to other commands while the block runs. With `wait`, first wait until no command measures."""
    measurement_lock.quiet(console, "building a revision", wait=wait)
    with other_work.told("the build of a revision"):
        yield


def require(study: Study, context: RunContext) -> None:
    """Raise MissingPart if any arm cannot take part; a build that cannot be started would look like one that fails."""
    for arm in study.arms:
        if (missing := context.missing(arm)) is not None:
            raise missing


def answer(folder: Path, console: Console, *, comment: Path | None, as_json: bool) -> int:
    """Print the verdict on two builds and the report. Return the exit code: 1 for slower, 3 for undecided, else 0.

    The comment for a pull request goes into the folder, and also to `comment` if it is given (`-`: stdout). With
    `as_json` the verdict is also printed as JSON. StoreError if `comment` cannot be written.
    """
    from tunnelmark.analyse import build_change, judge
    from tunnelmark.record import store
    from tunnelmark.report import build_answer

    show(folder, console)
    analysis = judge(store.load(folder))
    enough = analysis.results.plan.enough
    assert enough is not None
    verdict = build_change.builds(analysis, enough)
    text = build_answer.comment(analysis, verdict, link_of(os.environ) or str(folder / "report.html"))
    (folder / "comment.md").write_text(text, encoding="utf-8")
    if comment == Path("-"):
        click.echo(text, nl=False)
    elif comment is not None:
        try:
            comment.write_text(text, encoding="utf-8")
        except OSError as error:
            raise StoreError(
                f"{comment} cannot be written: {error.strerror}", hint=f"see {folder}/comment.md"
            ) from error
    if as_json:
        click.echo(build_answer.as_json(analysis, verdict))
    return _CODES.get(verdict.outcome, 0)


def link_of(environ: os._Environ[str] | dict[str, str]) -> str:
    """Return the URL of the CI job that runs this command, on runners of GitHub, Gitea and GitLab; "" elsewhere."""
    if "CI_JOB_URL" in environ:
        return environ["CI_JOB_URL"]
    parts = [environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")]
    return f"{parts[0]}/{parts[1]}/actions/runs/{parts[2]}" if all(parts) else ""


def _guests(counted: bool, backend: str | None, kernels: Sequence[str]) -> tuple[str, ...]:
    """Return the kernel of the virtual machine to run in, () for none. UsageError if options contradict each other."""
    if counted and backend == "netns":
        raise UsageError(
            "--counted needs a virtual machine, and --backend netns starts none",
            hint="leave --backend netns or --counted out",
        )
    guests = vm.chosen("vm" if counted else backend, kernels)
    if len(guests) > 1:
        raise UsageError("two builds are compared on one kernel", hint="give --kernel once")
    if counted:
        os.environ[vm.NO_KVM] = "1"
    return guests


def _tree(source: Path | None, build: str | None, made: Sequence[str], named: Sequence[str]) -> SourceTree | None:
    given = (source is not None, build is not None, bool(made))
    if not any(given):
        return None
    if source is None or build is None or not made:
        raise UsageError(
            "a revision needs a tree, a command and a program",
            hint="--source DIR --build COMMAND --program PATH_IN_TREE",
        )
    if not any(each.startswith("git:") for each in named):
        raise UsageError("--source is there, and no build is a revision", hint="--old git:REV --new git:REV")
    return SourceTree(source.absolute(), build, tuple(made))


def _watched(names: Sequence[str], catalogue: Catalogue, *, counted: bool) -> tuple[str, ...] | None:
    """Return the named collectors; if none is named, None, or on counted time the light ones and system calls."""
    chosen = collectors.chosen(names, catalogue)
    return (*catalogue.light, "syscalls") if chosen is None and counted else chosen
