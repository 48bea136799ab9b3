"""The commands `repeat`, which runs several sessions of a study here, and `merge`, which joins runs from anywhere."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click
from click.core import ParameterSource
from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli import interrupts, output, param_types, run_options
from tunnelmark.cli.measuring import study_of
from tunnelmark.cli.report import show_merged
from tunnelmark.cli.run_options import LengthOptions, RunOptions, asked
from tunnelmark.errors import StoreError, UsageError
from tunnelmark.plan.design import AXES
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.model import Study
from tunnelmark.record import several_runs, store
from tunnelmark.record.results import INPUTS, JOURNAL
from tunnelmark.record.several_runs import Member
from tunnelmark.units import Duration

_OF_THE_FIRST = {
    **{name: f"--{name}" for name in ("blocks", "seed", "smoke", "full", "rate", "watch")},
    "profile_stacks": "--profile-stacks",
    "no_repeat": "--no-repeat",
    **{f"only_{axis}": f"--{one}" for axis, one in AXES.items()},
}
"""By parameter: options that say what is measured. Later sessions take these settings from the first one's folder."""


@click.command()
@click.argument("study", type=param_types.STUDY)
@click.option("--sessions", type=click.IntRange(min=2), required=True, help="Total number of runs.")
@click.option("--pause", metavar="TIME", help="Pause between two runs, such as '30 min' [none].")
@run_options.length(
    blocks="Number of blocks per run, instead of the study's own.",
    seed="Seed of the first run, instead of the study's own; each later run gets the next one.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results [results/STUDY-TIME].")
@run_options.options(several=True)
def repeat(
    study: str, sessions: int, pause: str | None, length: LengthOptions, out: Path | None, options: RunOptions
) -> int:
    """Run STUDY several times, each a session with an order and links of its own, and report all of them as one.

    Only several boots, days and machines show how results vary between them. Call it again with the same --out and a higher
    --sessions after a restart or on another day: it adds the missing sessions, which are as the first one was asked. `tunnelmark
    merge` joins machines.
    """
    wait = _pause(pause)
    loaded = asked(study, length, options)
    folder = out or Path("results") / f"{loaded.name}-{datetime.now():%Y%m%d-%H%M%S}"
    console = options.console()
    begun = folder.exists() and any(folder.iterdir())
    if begun and not several_runs.is_merged(folder):
        raise StoreError(f"{folder} is not empty, and holds no sessions", hint="choose another folder with --out")
    known = {member.name: member for member in several_runs.members(folder)} if begun else {}
    if _done(several_runs.place(folder, 1)):
        _require_like_the_first(click.get_current_context(), folder)
    code = 0
    for number in range(1, sessions + 1):
        place = several_runs.place(folder, number)
        if _done(place):
            continue
        if known and wait and number > 1:
            _rest(wait, console)
        this = loaded if number == 1 else _like_the_first(loaded, folder, number)
        several_runs.note(folder, list(known.values()))  # before the session begins, so that the folder says what it is
        interrupts.goes_on("nothing of this session was measured yet")
        console.print(f"session {number} of {sessions}", style="bold")
        # Later sessions have the rates of the first one, even a rate that `--rate` stated.
        ways = options if number == 1 else replace(options, rate=None)
        code = max(code, study_of(this, place, ways, named=False))
        known[place.name] = Member(place.name)
        several_runs.note(folder, list(known.values()))
        again = f"tunnelmark repeat {shlex.quote(study)} --sessions {sessions} --out {shlex.quote(str(folder))}"
        interrupts.goes_on(f"every session is kept. Go on with: {again}")
    for number in range(1, sessions + 1):  # also sessions that `run --resume` has finished since
        place = several_runs.place(folder, number)
        known.setdefault(place.name, Member(place.name))
    several_runs.note(folder, [known[name] for name in sorted(known)])
    code = max(code, show_merged(folder, console))
    if options.quiet:
        click.echo(folder, err=options.progress == "json")
    return code


@click.command()
@click.argument("results", nargs=-1, required=True, type=param_types.RESULTS)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the merged results [results/merged-TIME].")
@click.option("--json", "as_json", is_flag=True, help="Print the analysis as JSON instead of tables.")
def merge(results: tuple[Path, ...], out: Path | None, as_json: bool) -> int:
    """Join RESULTS: runs of one study on other boots, days or machines, single or repeated; each may hold more than the others.

    Nothing is measured. What the runs share is joined comparison by comparison. The report says what was not joined, and why.
    """
    folder = out or Path("results") / f"merged-{datetime.now():%Y%m%d-%H%M%S}"
    several_runs.join(folder, results)
    return show_merged(folder, output.console(), as_json=as_json)


def _require_like_the_first(context: click.Context, folder: Path) -> None:
    """Raise UsageError if an option of `_OF_THE_FIRST` was given; call it when the first session has ended."""
    for parameter, option in _OF_THE_FIRST.items():
        if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
            raise UsageError(
                f"{option} would change nothing: the sessions in {folder} are all as the first one was asked",
                hint=f"leave {option} out, or choose another folder with --out",
            )


def _done(place: Path) -> bool:
    """Return whether a session has finished; False if it was never begun. StoreError if it has begun but not ended."""
    if not (place / JOURNAL).exists():
        return False
    if not store.load(place).finished:
        raise StoreError(
            f"{place} was begun and is not finished",
            hint=f"first go on with `tunnelmark run --resume {shlex.quote(str(place))}`, then run this command again",
        )
    return True


def _like_the_first(study: Study, folder: Path, number: int) -> Study:
    """Return the first session's study and rates with this session's seed. UsageError if it was a different study."""
    first = several_runs.place(folder, 1)
    info = store.load_plan(first)
    if info.study != study.name:
        raise UsageError(
            f"{folder} holds sessions of {info.study}, not of {study.name}", hint="choose another with --out"
        )
    found = load_study(
        info.study,
        Files((first / INPUTS,)),
        registry.catalogue(),
        blocks=info.blocks if info.enough is None else info.enough.floor,
        grows=False,
        seed=info.seed + number - 1,
        smoke=info.smoke,
        full=info.full,
        watch=info.watch,
    )
    found = replace(found, enough=info.enough, replacements=found.replacements if info.enough is None else 0)
    return found if info.replacements or info.attempts > 1 else found.unrepeated


def _pause(text: str | None) -> float:
    if text is None:
        return 0.0
    try:
        return float(Duration.parse(text))
    except ValueError as error:
        raise UsageError(f"--pause {text}: {error}", hint="such as '30 min'") from error


def _rest(seconds: float, console: Console) -> None:
    with console.status(f"waiting {Duration(seconds)} before the next session"):
        time.sleep(seconds)
