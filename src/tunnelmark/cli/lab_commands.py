"""The commands `lab up`, `list`, `exec`, `shell`, `logs` and `down`, for a lab to try things in by hand."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

import click

from tunnelmark import registry
from tunnelmark.cli import (
    binary_overrides,
    core_options,
    here_only,
    interrupts,
    inventory_options,
    lab_completion,
    lab_states,
    output,
    param_types,
)
from tunnelmark.cli.measurement_lock import no_wait, quiet
from tunnelmark.errors import LabError, UnknownName, UsageError
from tunnelmark.host import privileges
from tunnelmark.linux.late_interrupt import held_back
from tunnelmark.packages import status
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_topology

_PATIENCE = 60.0  # seconds until a lab must have said that it is up, or why not; a VPN may need more (`_patience`)
_HOSTS_PATIENCE = 240.0  # the same on other hosts, of which each may take 60 s to begin

_name = click.option(
    "--name",
    default="lab",
    show_default=True,
    type=lab_completion.LAB,
    help="Name of the lab, if there are several.",
)


@click.group()
def lab() -> None:
    """Make a lab to try things in by hand: nodes on links, with a VPN if you like.

    It stays up until `tunnelmark lab down`; `lab shell NODE` is a shell on one of its nodes. With `lab up --backend ssh`
    the nodes are on other hosts, and the same commands reach them.
    """


@lab.command()
@click.argument("topology", default="pair", type=param_types.TOPOLOGY)
@param_types.once(
    "--profile", default="gigabit", type=param_types.PROFILE, help="What its links do; join several with +."
)
@click.option("--vpn", type=param_types.VPN, help="Deploy this VPN on all nodes.")
@click.option(
    "--backend",
    type=click.Choice(("netns", "ssh")),
    help="Where the lab runs: namespaces of this kernel, or other hosts [netns].",
)
@inventory_options.option
@click.option("--timings", is_flag=True, help="Print how long each step took, and how quickly such a lab is removed.")
@core_options.option
@no_wait
@binary_overrides.option
@_name
def up(
    topology: str,
    profile: str,
    vpn: str | None,
    backend: str | None,
    inventory: Path | None,
    timings: bool,
    no_wait: bool,
    name: str,
) -> None:
    """Bring up the nodes and links of TOPOLOGY."""
    on = inventory_options.chosen(backend, inventory)
    if on is None:
        privileges.require("the lab makes network namespaces")
        _require_programs(vpn or "")
    else:
        here_only.refuse(inventory_options.ELSEWHERE)
    if lab_states.state_of(name) is not None:
        raise UsageError(f"a lab called {name!r} is up already", hint=f"`tunnelmark lab down --name {name}`, or --name")
    if (gone := lab_states.lost(name)) is not None:
        click.echo(f"note: {gone.message}", err=True)
    patience = _patience(vpn or "", topology, hosts=on is not None)
    if on is None:
        quiet(output.console(), "a lab", wait=not no_wait)
    lab_states.own(name).state.unlink(missing_ok=True)
    interrupts.goes_on("no lab is left; run the same command to make it again")
    arguments = [name, topology, profile, vpn or "", str(inventory or "")]
    with tempfile.TemporaryFile() as complaints:  # not our own stderr: its reader would wait for the lab's end
        holder = None
        try:
            with held_back():  # until we know whom to end
                holder = subprocess.Popen(
                    [sys.executable, "-m", lab_states.DAEMON, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    pass_fds=binary_overrides.held(),
                    start_new_session=True,
                )
            state = _first_words(holder, complaints, patience)
        except KeyboardInterrupt:
            if holder is not None:
                holder.kill()  # its lab goes with it
                holder.wait()
            raise
    if "error" in state:
        raise LabError(state["error"], hint=state["hint"])
    _show(state)
    if timings:
        spent = state["timings"]
        what = "lab server started" if on is None else "hosts connected"
        click.echo(f"{what} in {spent['server']:.3f} s, once per command")
        click.echo(f"lab up in {spent['up']:.3f} s: nodes {spent['nodes']:.3f} s, links {spent['links']:.3f} s")
        click.echo(f"a lab like it was removed in {spent['gone']:.3f} s")
        if "vpn" in spent:
            click.echo(f"{vpn} answered in every direction after {spent['vpn']:.3f} s")


@lab.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List the labs that are up."""
    found, gone = list(lab_states.up()), [error for name in lab_states.names() if (error := lab_states.lost(name))]
    for error in gone:
        click.echo(error.message, err=True)
    if as_json:
        output.as_json(found)
        return
    for state in found:
        _show(state)
    if not found and not gone:
        click.echo("no lab is up; see `tunnelmark lab up --help`")


@lab.command(hidden=True)
def relay() -> None:
    """Serve the nodes of a command on another machine, over standard input and output; `run --backend ssh` starts it."""
    from tunnelmark.cli import host_relay
    from tunnelmark.lab.ssh import relay as served
    from tunnelmark.run.host_collection import HostCollections

    asyncio.run(served.serve(host_relay.facts, HostCollections().asked, host_relay.held))


@lab.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("node", type=lab_completion.NODE)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@_name
def exec_(node: str, command: tuple[str, ...], name: str) -> int:
    """Run COMMAND on NODE of a lab, and end with its exit code."""
    return _enter(name, node, command[1:] if command[0] == "--" else command)


@lab.command()
@click.argument("node", type=lab_completion.NODE)
@_name
def shell(node: str, name: str) -> int:
    """Open a shell on NODE of a lab."""
    return _enter(name, node, ["bash", "--norc", "--noprofile"], {"PS1": f"[{name}:{node}] \\w # "})


@lab.command()
@click.argument("node", type=lab_completion.NODE)
@click.argument("program", required=False, type=lab_completion.PROGRAM)
@click.option("-f", "--follow", is_flag=True, help="Follow the logs until Ctrl-C or the end of the lab.")
@_name
def logs(node: str, program: str | None, follow: bool, name: str) -> None:
    """Show what the daemons on NODE of a lab printed, or PROGRAM alone; also of a lab whose `lab up` failed."""
    files = lab_states.files_of(name)
    gone = lab_states.lost(name)
    state = lab_states.state_of(name) if gone is None else None
    found = lab_states.logs_in(files.logs if state is not None else files.kept)
    if state is None and not found:
        lab_states.required(name)
    if gone is not None:
        click.echo(gone.message, err=True)
    if node not in (known := {*found, *(state["nodes"] if state is not None else ())}):
        raise UnknownName("node", node, known)
    own = found.get(node, {})
    if not own:
        vpn = f"{state['vpn']} runs none there" if state is not None and state["vpn"] else "the lab has no VPN"
        raise UsageError(f"node {node} has no daemon: {vpn}", hint="`tunnelmark lab up --vpn NAME` deploys one")
    if program is not None and program not in own:
        raise UnknownName("daemon", program, own)
    shown = [path for daemon, path in own.items() if program in (None, daemon)]
    # tail(1) names each file where there are several, and ends with the lab that it follows.
    following = ["--follow=descriptor", f"--pid={state['pid']}"] if follow and state is not None else []
    sys.stdout.flush()
    os.execvp("tail", ["tail", "--lines=+1", *following, "--", *map(str, shown)])


@lab.command()
@_name
def down(name: str) -> None:
    """End a lab and everything in it."""
    gone = lab_states.lost(name)
    state = lab_states.state_of(name) if gone is not None else lab_states.required(name)
    begun = time.monotonic()
    if state is not None:
        _end(state)
    if gone is not None:
        lab_states.forget_lost(name)
        raise gone
    click.echo(f"{name} is gone, in {time.monotonic() - begun:.3f} s")


def _end(state: dict[str, Any]) -> None:
    pidfd = os.pidfd_open(state["pid"])
    signal.pidfd_send_signal(pidfd, signal.SIGTERM)
    if not select.select([pidfd], [], [], _PATIENCE)[0]:
        raise LabError(
            f"the lab {state['name']!r} did not end within {_PATIENCE:g} s",
            hint=f"kill -9 {state['pid']} ends it for sure",
        )


def _require_programs(vpn: str) -> None:
    """Raise MissingPart if a program of the VPN is not on this machine."""
    if not vpn:
        return
    driver, options = registry.arm(vpn)
    if (found := status.missing(driver.part(options))) is not None:
        raise found


def _patience(vpn: str, topology: str, *, hosts: bool) -> float:
    """Return in how many seconds a lab must be up: more if the VPN admits nodes one by one (`lab_daemon.hold`)."""
    patience = _HOSTS_PATIENCE if hosts else _PATIENCE
    if not vpn:
        return patience
    files, topology = Files.standard().with_paths("topology", topology)
    driver, _ = registry.arm(vpn)
    return patience + driver.start_of(len(load_topology(topology, files).nodes))


def _first_words(holder: subprocess.Popen[bytes], complaints: IO[bytes], patience: float) -> dict[str, Any]:
    assert holder.stdout is not None
    if not select.select([holder.stdout], [], [], patience)[0]:
        holder.kill()
        raise LabError(f"the lab was not up within {patience:g} s", hint="`tunnelmark doctor` says what may be missing")
    line = holder.stdout.readline()
    if not line:
        code = holder.wait()
        complaints.seek(0)
        said = complaints.read().decode(errors="replace").strip()
        raise LabError(
            f"the lab's process ended with code {code}: {said}", hint="`tunnelmark doctor` says what may be missing"
        )
    state: dict[str, Any] = json.loads(line)
    return state


def _enter(name: str, node: str, command: Sequence[str], env: dict[str, str] | None = None) -> int:
    """Run the command on the node, and return its exit code; on this machine, this process becomes the command."""
    nodes = lab_states.required(name)["nodes"]
    if node not in nodes:
        raise UnknownName("node", node, nodes)
    more = ({"TERM": os.environ["TERM"]} if "TERM" in os.environ else {}) | (env or {})
    if "host" not in nodes[node]:
        _become(nodes[node], command, more)
    from tunnelmark.cli import exec_client

    return exec_client.run(lab_states.files_of(name).door, node, command, more)


def _become(node: dict[str, Any], command: Sequence[str], env: dict[str, str]) -> NoReturn:
    """Become the command, as a member of the namespaces and control groups of a node of this machine."""
    from tunnelmark.lab.node import ENVIRONMENT

    for group in node["groups"]:
        Path(group, "cgroup.procs").write_text("0")
    argv = ["nsenter", "-t", str(node["pid"]), "-m", "-u", "-i", "-n", "-p", "--wd=/", "--", *command]
    sys.stdout.flush()
    os.execvpe("nsenter", argv, ENVIRONMENT | env)


def _show(state: dict[str, Any]) -> None:
    console = output.console()
    vpn = f", {state['vpn']}" if state["vpn"] else ""
    console.print(f"[bold]{state['name']}[/] is up: {state['topology']}, {state['profile']}{vpn}")
    for node, about in state["nodes"].items():
        overlay = f"  overlay {about['overlay']}" if about["overlay"] else ""
        where = f"underlay {about['underlay']}" if about["underlay"] else "all links run through it"
        host = f"  on {about['host']}" if "host" in about else ""
        console.print(f"  {node:<8} {where}{overlay}{host}", soft_wrap=True)
