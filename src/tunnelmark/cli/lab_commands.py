"""The commands `lab up`, `lab list`, `lab exec`, `lab shell`, `lab logs`, `lab down`: a lab to try things in by hand."""

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
from typing import IO, Any

import click

from tunnelmark.cli import binary_overrides, core_options, interrupts, lab_completion, lab_states, output, param_types
from tunnelmark.cli.measurement_lock import no_wait, quiet
from tunnelmark.errors import LabError, UnknownName, UsageError
from tunnelmark.host import privileges
from tunnelmark.linux.late_interrupt import held_back

_PATIENCE = 60.0  # seconds until a lab must have said that it is up, or why not
_name = click.option(
    "--name",
    default="lab",
    show_default=True,
    type=lab_completion.LAB,
    help="Name of the lab, if there are several.",
)


@click.group()
def lab() -> None:
    """A lab to try things in by hand: hosts on links, with a VPN if you like.

    It stays up until `tunnelmark lab down`; `lab shell NODE` is a shell on one of its hosts.
    """


@lab.command()
@click.argument("topology", default="pair", type=param_types.TOPOLOGY)
@param_types.once(
    "--profile", default="gigabit", type=param_types.PROFILE, help="What its links do; join several with +."
)
@click.option("--vpn", type=param_types.VPN, help="Deploy this VPN on all nodes.")
@click.option("--timings", is_flag=True, help="Print how long each step took, and how quickly such a lab is removed.")
@core_options.option
@no_wait
@binary_overrides.option
@_name
def up(topology: str, profile: str, vpn: str | None, timings: bool, no_wait: bool, name: str) -> None:
    """Bring up the nodes and links of TOPOLOGY."""
    privileges.require("the lab makes network namespaces")
    if lab_states.state_of(name) is not None:
        raise UsageError(f"a lab called {name!r} is up already", hint=f"`tunnelmark lab down --name {name}`, or --name")
    quiet(output.console(), "a lab", wait=not no_wait)
    lab_states.state_file(name).unlink(missing_ok=True)
    interrupts.goes_on("no lab is left; run the same command to make it again")
    arguments = [name, topology, profile, *([vpn] if vpn else [])]
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
            state = _first_words(holder, complaints)
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
        click.echo(f"lab server started in {spent['server']:.3f} s, once per command")
        click.echo(f"lab up in {spent['up']:.3f} s: nodes {spent['nodes']:.3f} s, links {spent['links']:.3f} s")
        click.echo(f"a lab like it was removed in {spent['gone']:.3f} s")
        if "vpn" in spent:
            click.echo(f"{vpn} answered in every direction after {spent['vpn']:.3f} s")


@lab.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List the labs that are up."""
    found = [
        state
        for path in sorted(lab_states.STATES.glob("*.json"))
        if (state := lab_states.state_of(path.stem)) is not None
    ]
    if as_json:
        output.as_json(found)
        return
    for state in found:
        _show(state)
    if not found:
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
def exec_(node: str, command: tuple[str, ...], name: str) -> None:
    """Run COMMAND on NODE of a lab, and end with its exit code."""
    _enter(name, node, command[1:] if command[0] == "--" else command)


@lab.command()
@click.argument("node", type=lab_completion.NODE)
@_name
def shell(node: str, name: str) -> None:
    """Open a shell on NODE of a lab."""
    _enter(name, node, ["bash", "--norc", "--noprofile"], {"PS1": f"[{name}:{node}] \\w # "})


@lab.command()
@click.argument("node", type=lab_completion.NODE)
@click.argument("program", required=False, type=lab_completion.PROGRAM)
@click.option("-f", "--follow", is_flag=True, help="Follow the logs until Ctrl-C or the end of the lab.")
@_name
def logs(node: str, program: str | None, follow: bool, name: str) -> None:
    """Show what the daemons on NODE of a lab printed, or PROGRAM alone; also of a lab whose `lab up` failed."""
    state = lab_states.state_of(name)
    folder = lab_states.logs_of(name) if state is not None else lab_states.kept_logs(name)
    found = lab_states.logs_in(folder)
    if state is None and not found:
        lab_states.required(name)
    if node not in (known := {*found, *(state["nodes"] if state is not None else ())}):
        raise UnknownName("node", node, known)
    files = found.get(node, {})
    if not files:
        vpn = f"{state['vpn']} runs none there" if state is not None and state["vpn"] else "the lab has no VPN"
        raise UsageError(f"node {node} has no daemon: {vpn}", hint="`tunnelmark lab up --vpn NAME` deploys one")
    if program is not None and program not in files:
        raise UnknownName("daemon", program, files)
    shown = [path for daemon, path in files.items() if program in (None, daemon)]
    # tail(1) names each file where there are several, and ends with the lab that it follows.
    following = ["--follow=descriptor", f"--pid={state['pid']}"] if follow and state is not None else []
    sys.stdout.flush()
    os.execvp("tail", ["tail", "--lines=+1", *following, "--", *map(str, shown)])


@lab.command()
@_name
def down(name: str) -> None:
    """End a lab and everything in it."""
    state = lab_states.required(name)
    begun = time.monotonic()
    pidfd = os.pidfd_open(state["pid"])
    signal.pidfd_send_signal(pidfd, signal.SIGTERM)
    if not select.select([pidfd], [], [], _PATIENCE)[0]:
        raise LabError(
            f"the lab {name!r} did not end within {_PATIENCE:g} s", hint=f"kill -9 {state['pid']} ends it for sure"
        )
    click.echo(f"{name} is gone, in {time.monotonic() - begun:.3f} s")


def _first_words(holder: subprocess.Popen[bytes], complaints: IO[bytes]) -> dict[str, Any]:
    assert holder.stdout is not None
    if not select.select([holder.stdout], [], [], _PATIENCE)[0]:
        holder.kill()
        raise LabError(
            f"the lab was not up within {_PATIENCE:g} s", hint="`tunnelmark doctor` says what may be missing"
        )
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


def _enter(name: str, node: str, command: Sequence[str], env: dict[str, str] | None = None) -> None:
    """Become the command, as a member of the node's namespaces and control groups."""
    from tunnelmark.lab.node import ENVIRONMENT

    nodes = lab_states.required(name)["nodes"]
    if node not in nodes:
        raise UnknownName("node", node, nodes)
    for group in nodes[node]["groups"]:
        Path(group, "cgroup.procs").write_text("0")
    argv = ["nsenter", "-t", str(nodes[node]["pid"]), "-m", "-u", "-i", "-n", "-p", "--wd=/", "--", *command]
    terminal = {"TERM": os.environ["TERM"]} if "TERM" in os.environ else {}
    sys.stdout.flush()
    os.execvpe("nsenter", argv, ENVIRONMENT | terminal | (env or {}))


def _show(state: dict[str, Any]) -> None:
    console = output.console()
    vpn = f", {state['vpn']}" if state["vpn"] else ""
    console.print(f"[bold]{state['name']}[/] is up: {state['topology']}, {state['profile']}{vpn}")
    for node, about in state["nodes"].items():
        overlay = f"  overlay {about['overlay']}" if about["overlay"] else ""
        where = f"underlay {about['underlay']}" if about["underlay"] else "all links run through it"
        console.print(f"  {node:<8} {where}{overlay}", soft_wrap=True)
