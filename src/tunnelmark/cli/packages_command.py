"""The commands `packages list`, `install` and `verify`: the VPNs under test, from download to test."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterable

import click
from rich.text import Text

from tunnelmark import registry
from tunnelmark.cli import binary_overrides, interrupts, other_work, output, param_types
from tunnelmark.cli.measurement_lock import no_wait, quiet
from tunnelmark.cli.output import as_json, table
from tunnelmark.errors import MissingPart, UsageError
from tunnelmark.host import utilisation
from tunnelmark.host.programs import Requirement, part_version, sha256
from tunnelmark.packages.recipe import Recipe, recipe, recipes
from tunnelmark.packages.status import RecipeStatus, recipe_for, standing, to_do, where
from tunnelmark.packages.toolchains import lacking
from tunnelmark.units import clock

_STYLES = {"ready": "green", "installable": "yellow", "missing": "red"}


@click.group()
def packages() -> None:
    """List, install and verify the VPNs under test.

    Each is built from its registry, in a pinned version, into a folder of its own. docs/packages.md says more.
    """


@packages.command("list")
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
@binary_overrides.option
def list_(json_: bool) -> None:
    """Show what is ready and in which version, what can be installed and how long that takes, what you must install yourself."""
    arms = _arms()
    found = {name: (one, standing(one)) for name, one in recipes().items()}
    if json_:
        as_json([_plain(one, how, arms.get(name, {})) for name, (one, how) in found.items()])
        return
    table(
        ("name", "state", "version", "from", "arms, workloads", ""),
        [
            (
                name,
                Text(how.state, style=_STYLES[how.state]),
                _short(_version(how, arms.get(name, {}))),
                " and ".join(one.sources),
                ", ".join([*arms.get(name, {}), *_workloads(name)]) or "-",
                how.note,
            )
            for name, (one, how) in found.items()
        ],
    )
    ready = [name for name, (_, how) in found.items() if how.state == "ready"]
    click.echo(
        f"\n{len(ready)} of {len(found)} packages are ready, and with them {sum(len(arms.get(one, {})) for one in ready)} arms"
    )


@packages.command()
@click.argument("chosen", metavar="[NAME]...", nargs=-1, type=param_types.RECIPE)
@click.option("--all", "all_", is_flag=True, help="Install every package that a registry carries.")
@click.option("--quick", is_flag=True, help="Install what is built quickly, as CI does.")
@click.option("--jobs", type=click.IntRange(min=1), help="Packages built at the same time  [default: one per core].")
@no_wait
def install(chosen: tuple[str, ...], all_: bool, quick: bool, jobs: int | None, no_wait: bool) -> int:
    """Install packages, each into a folder of its own, at low priority.

    It can be stopped at any moment; the same command goes on, and does nothing for what is in place. Exit code 1 when
    one failed.
    """
    from tunnelmark.cli.install_progress import InstallProgress
    from tunnelmark.packages.install import install

    if bool(chosen) + all_ + quick != 1:
        raise UsageError("name packages, or say --all or --quick", hint="see `tunnelmark packages list`")
    wanted = [recipe(name) for name in chosen] or [
        one for one in recipes().values() if (one.about.ci if quick else not one.file.makers)
    ]
    if os.geteuid() != 0 and any((one.packages or lacking(one)) and to_do(one) for one in wanted):
        _ask_sudo()
    console = output.console()
    jobs = jobs or utilisation.cores()
    if any(map(to_do, wanted)):
        quiet(console, "building VPNs", wait=not no_wait)
    interrupts.goes_on(
        "what is in place stays, and apt finishes what it has begun; the same command goes on with the rest"
    )
    console.print(f"{len(wanted)} packages, up to {jobs} at once, at low priority; stop at any moment, and go on later")
    with other_work.told(f"packages install of {len(wanted)}"), InstallProgress(console, wanted, jobs) as live:
        outcomes = asyncio.run(install(wanted, live, jobs))
    counts = {
        result: sum(one.result == result for one in outcomes) for result in dict.fromkeys(o.result for o in outcomes)
    }
    console.print("  ".join(f"{number} {result}" for result, number in counts.items()))
    refused = ("failed",) if quick else ("failed", "impossible", "missing")
    return int(any(one.result in refused for one in outcomes))


@packages.command()
@click.argument("chosen", metavar="[NAME]...", nargs=-1)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Arms tested at the same time.")
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
@no_wait
@binary_overrides.option
def verify(chosen: tuple[str, ...], jobs: int, json_: bool, no_wait: bool) -> int:
    """Run the contract suite on every arm that is ready, or on NAME: an arm, or a package for all of its arms.

    It deploys each arm on three nodes. The arm must come up, carry packets both ways, show no plaintext, survive crashes and
    leave nothing behind. Needs root and the checkout. Exit code 1 when an arm failed. Most of the time it waits until an arm
    notices a crash. Two at once take half as long, but an arm that takes all cores (VpnCloud, after a crash) may make another
    one fail.
    """
    from tunnelmark.cli import package_verify

    console = output.console(stderr=json_)
    arms = _chosen_arms(chosen)
    package_verify.require()
    quiet(console, "the contract suite", wait=not no_wait)
    with other_work.told(f"packages verify of {len(arms)} arms"):
        return package_verify.verify(arms, console, jobs, json_)


def _ask_sudo() -> None:
    """Let sudo ask for its password now, not during the installation. MissingPart if it refuses."""
    try:
        code = subprocess.run(["sudo", "-v"], check=False).returncode
    except FileNotFoundError:
        return  # the recipe will say so
    if code != 0:
        raise MissingPart("sudo refuses, and Debian packages need root", hint="run the same command as root")


def _arms() -> dict[str, dict[str, Requirement]]:
    """Return by recipe the named arms whose programs it installs, each with its requirement."""
    found: dict[str, dict[str, Requirement]] = {}
    for name, part in registry.parts().items():
        if (one := recipe_for(part)) is not None:
            found.setdefault(one.name, {})[name] = part
    return found


def _workloads(recipe: str) -> list[str]:
    """Return the workloads whose programs a recipe installs."""
    return [name for name, one in registry.workloads().items() if one.recipe == recipe]


def _chosen_arms(chosen: Iterable[str]) -> dict[str, Requirement]:
    """Return the arms of these arms and packages; all if none is named. UnknownName if a name is neither."""
    known, brought = registry.parts(), _arms()
    found: dict[str, Requirement] = {}
    for name in chosen:
        if name in known:
            found[name] = known[name]
        elif not (arms := brought.get(recipe(name).name)):
            raise UsageError(f"no driver uses the package {name}", hint="see the arms in `tunnelmark packages list`")
        else:
            found |= arms
    return found or known


def _version(how: RecipeStatus, arms: dict[str, Requirement]) -> str:
    if how.version or how.state != "ready":
        return how.version
    try:
        return next((part_version(part) for part in arms.values()), "")
    except MissingPart:
        return ""


def _short(version: str) -> str:
    """Return a version as people read it: of Go's long pseudo-versions, only day and commit."""
    head, _, commit = version.rpartition("-")
    return f"{head.rpartition('-')[2][:8]}-{commit}" if version.startswith("0.0.0-") else version


def _plain(one: Recipe, how: RecipeStatus, arms: dict[str, Requirement]) -> dict[str, object]:
    paths = where(one) if how.state == "ready" else {}
    return {
        "name": one.name,
        "title": one.about.title,
        "homepage": one.about.homepage,
        "from": list(one.sources),
        "state": how.state,
        "version": _version(how, arms) or None,
        "note": how.note,
        "takes": clock(float(one.about.takes)),
        "takes_seconds": float(one.about.takes),
        "ci": one.about.ci,
        "arms": list(arms),
        "workloads": _workloads(one.name),
        "programs": {name: {"path": str(path), "sha256": sha256(path)} for name, path in paths.items()},
    }
