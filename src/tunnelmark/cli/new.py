"""`tunnelmark new`: writes a new profile, topology, workload, driver or CI workflow, and prints the next steps."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import click

import tunnelmark
from tunnelmark import registry
from tunnelmark.cli import param_types
from tunnelmark.errors import StoreError, UsageError
from tunnelmark.plan import new_files as plan
from tunnelmark.plan.files import FOLDERS, PATH_VARIABLE, SUFFIX, Files
from tunnelmark.vpns import new_driver as vpns
from tunnelmark.workloads import new_workload as workloads

_F = TypeVar("_F", bound=Callable[..., Any])


def _dir(place: str) -> Callable[[_F], _F]:
    """Return a decorator that gives a command the option `--dir`: the folder in which `place` is created."""
    return click.option(
        "--dir",
        "folder",
        type=click.Path(file_okay=False, path_type=Path),
        help=f"Folder to create {place} in (add it to TUNNELMARK_PATH).  [default: the current folder]",
    )


@click.group()
def new() -> None:
    """Start something new: a file that works as it is, with a comment wherever your own part goes."""


@new.command()
@click.argument("name")
@_dir("profiles/NAME.toml")
def profile(name: str, folder: Path | None) -> None:
    """Write the profile NAME: what a link does to packets."""
    file = _plan_file("profile", name, folder)
    path = shlex.quote(_near(file))
    _next(
        (f"change its figures, and say where they come from ({_guide('profile')})",),
        (f"tunnelmark check-link {path}", "measure what the link does"),
        (f"tunnelmark compare tinc --profile {path}", "compare VPNs over it"),
    )


@new.command()
@click.argument("name")
@_dir("topologies/NAME.toml")
def topology(name: str, folder: Path | None) -> None:
    """Write the topology NAME: which nodes there are, joined how."""
    file = _plan_file("topology", name, folder)
    path = shlex.quote(_near(file))
    _next(
        (f"change its nodes and links ({_guide('profile')})",),
        (f"tunnelmark lab up {path}", "look at it by hand"),
        (f"tunnelmark compare tinc --topology {path}", "compare VPNs on it"),
    )


@new.command()
@click.argument("name")
@_dir("workloads/NAME.py")
def workload(name: str, folder: Path | None) -> None:
    """Write the workload NAME, which runs as it is (a TCP stream by iperf3) and is then changed."""
    base = _base(folder)
    module, text = workloads.scaffold(name)
    _require_free("workload", name, registry.workloads())
    file = _write(base / "workloads" / f"{module}.py", text)
    _next(
        *_known_by(base),
        (f"replace the example by your own in {file.name} ({_guide('workload')})",),
        (f"tunnelmark compare tinc --workload {name} --blocks 1", "try it"),
    )


@new.command()
@click.argument("name")
@click.option(
    "--like",
    type=click.Choice(get_args(vpns.Like)),
    default="wireguard-go",
    show_default=True,
    help="Starting point: a mesh of equals, or (openvpn) clients of a server.",
)
@_dir("vpns/NAME.py")
def vpn(name: str, like: vpns.Like, folder: Path | None) -> None:
    """Write a driver for the VPN NAME, which runs as it is and is then filled in."""
    base = _base(folder)
    module, text = vpns.scaffold(name, like)
    _require_free("VPN", name, registry.vpns())
    file = _write(base / "vpns" / f"{module}.py", text)
    facts = (base / "data" if base == _package() else base) / "matrix" / f"{name}.toml"
    if not facts.exists():  # a VPN without a driver may have a row already
        _write(facts, vpns.facts(name))
    _next(
        *_known_by(base),
        (f"fill in {file.name} ({_guide('vpn')} explains each field)",),
        (f"make contract VPN={name}", "the suite that every driver passes"),
        (f"tunnelmark compare {name}", "compare it with the bare link"),
        (f"fill in {_near(facts)}", f"what people choose by; `tunnelmark matrix {name}` shows it"),
    )


@new.command("ab-workflow")
@click.argument("vpn", type=param_types.VPN)
@click.option(
    "--forge",
    type=click.Choice(get_args(plan.Forge)),
    default="github",
    show_default=True,
    help="Whose runners: GitHub's (also Gitea's and Forgejo's), or GitLab's.",
)
@_dir("the workflow")
def ab_workflow(vpn: str, forge: plan.Forge, folder: Path | None) -> None:
    """Write a CI workflow that says in each pull request whether it makes VPN slower (`tunnelmark ab`)."""
    driver, options = registry.arm(vpn)
    file = _write(_base(folder) / plan.WORKFLOWS[forge], plan.workflow(forge, vpn, driver.part(options).programs[0]))
    _next(
        ("adapt what is marked with << (docs/ab.md)",),
        (f"tunnelmark ab {vpn} --help", "what it runs"),
    )
    if forge == "gitlab":
        click.echo(f"  include: {{local: {file.relative_to(_base(folder))}}} in .gitlab-ci.yml")


def _plan_file(kind: Literal["profile", "topology"], name: str, folder: Path | None) -> Path:
    file = _base(folder) / FOLDERS[kind] / f"{name}{SUFFIX}"
    text = plan.scaffold(kind, name, shlex.quote(_near(file)))  # checks the name first
    _require_free(kind, name, Files.standard().names(kind))
    return _write(file, text)


def _require_free(kind: str, name: str, known: Collection[str]) -> None:
    if name in known:
        raise UsageError(f"there is a {kind} called {name} already", hint="choose another name")


def _write(file: Path, text: str) -> Path:
    """Write a new file, and return its path. UsageError if it exists already, StoreError if it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as new_file:
            new_file.write(text)
    except FileExistsError:
        raise UsageError(f"{file} exists already", hint="choose another name, or another folder with --dir") from None
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}", hint="choose a folder with --dir") from error
    click.echo(f"wrote {file}")
    return file


def _next(*steps: tuple[str, ...]) -> None:
    """Print the next steps: one line for each, with its purpose at the end."""
    click.echo("next:")
    width = max(len(step[0]) for step in steps if len(step) > 1)
    for what, *why in steps:
        click.echo(f"  {what:<{width}}   {why[0]}" if why else f"  {what}")


def _known_by(base: Path) -> tuple[tuple[str, ...], ...]:
    """Return the step that adds the folder to TUNNELMARK_PATH; () if it is there, or is the package's own folder."""
    known = {str(_package()), *os.environ.get(PATH_VARIABLE, "").split(os.pathsep)}
    return () if str(base) in known else ((f"export {PATH_VARIABLE}={shlex.quote(str(base))}",),)


def _guide(kind: str) -> str:
    return f"docs/add-a-{kind}.md"


def _base(folder: Path | None) -> Path:
    return (folder or Path.cwd()).resolve()


def _package() -> Path:
    return Path(tunnelmark.__file__).parent


def _near(file: Path) -> str:
    """Return the path relative to the current folder with `./`, else the absolute path; neither can be a name."""
    here = Path.cwd().resolve()
    return f"./{file.relative_to(here)}" if file.is_relative_to(here) else str(file)
