"""The command `check-link`: sends probes through a bare link, and compares what they met with the profile."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from tunnelmark.cli import (
    core_options,
    here_only,
    inventory_options,
    link_capacities,
    output,
    param_types,
    real_hosts,
    vm,
)
from tunnelmark.errors import UsageError
from tunnelmark.lab.ssh.inventory import Inventory
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import link_inputs, load_profile, load_topology
from tunnelmark.plan.model import Profile, Topology
from tunnelmark.record.link_check import LinkCheck, LinkLine

_STYLES = {True: "green", False: "bold red", None: "dim"}
_WORDS = {True: "ok", False: "outside", None: "-"}
_PARTS = {"shown": "green", "not tested": "yellow", "outside": "bold red"}


@click.command("check-link")
@click.argument("profile", type=param_types.PROFILE)
@param_types.once("--topology", default="pair", type=param_types.TOPOLOGY, help="Topology whose first link is checked.")
@click.option("--probes", type=int, default=5000, show_default=True, help="Probes in each direction.")
@click.option("--rate", type=float, default=1000.0, show_default=True, help="Probes per second; fewer on slow links.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the link's random decisions.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Keep the raw output in this folder.")
@core_options.option
@partial(vm.options, hosts=True)
@inventory_options.option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check_link(
    profile: str,
    topology: str,
    probes: int,
    rate: float,
    seed: int,
    out: Path | None,
    backend: str | None,
    kernels: tuple[str, ...],
    inventory: Path | None,
    as_json: bool,
) -> int:
    """Check the link of PROFILE (several may be joined: wifi-good+gigabit).

    Probes go both ways through a fresh lab without a VPN; a train of full packets then fills the queue of each rate.
    Each line has what the profile states, what follows from it for these probes, and what they met. Exit code 1 when
    a line is outside of its tolerance.
    """
    if probes < 100 or not 0 < rate < inf:
        raise UsageError("too few probes to say anything", hint="--probes from 100 on, --rate above 0")
    files, profile = Files.standard().with_paths("profile", profile)
    files, topology = files.with_paths("topology", topology)
    what = load_topology(topology, files), load_profile(profile, files)
    guests, on = vm.chosen(backend, kernels), inventory_options.chosen(backend, inventory)
    if on is not None:
        here_only.refuse(inventory_options.ELSEWHERE)
    console = output.console(stderr=as_json)
    checks: list[tuple[LinkCheck, Mapping[str, Any] | None]] = []
    measured = real_hosts.alone(on, console, f"check-link {profile}", seconds=probes / rate)
    with tempfile.TemporaryDirectory(prefix="tunnelmark-link-") as temporary, measured:
        folder = out or Path(temporary)
        if guests:
            request = {"profile": profile, "topology": topology, "probes": probes, "rate": rate, "seed": seed}
            for place, release in vm.places(folder, guests).items():
                checks.append(vm.check_link(request, link_inputs(profile, topology, files), place, release, console))
        else:
            what = what[0], link_capacities.closed_now(what[1], what[0], files, on)
            checks.append((asyncio.run(verify(*what, probes, rate, seed, folder, on)), None))
    if as_json:
        shown = [{**asdict(check), **({"guest": guest} if guest else {})} for check, guest in checks]
        output.as_json(shown if len(shown) > 1 else shown[0])
    else:
        for check, guest in checks:
            show(check, what[1], guest)
    return 0 if all(check.verdict == "verified" for check, _ in checks) else 1


async def verify(
    topology: Topology,
    profile: Profile,
    probes: int,
    rate: float,
    seed: int,
    raw: Path,
    on: Inventory | None = None,
) -> LinkCheck:
    """Measure and judge a link of the topology with this kernel, or between the hosts `on` of an inventory.

    `probes`: how many are sent in each direction. `rate`: how many per second. Raw output goes to the folder `raw`.
    """
    from tunnelmark.analyse.link import judge, path
    from tunnelmark.model.probe_plan import pace_of
    from tunnelmark.run.link_observation import observe

    pace = pace_of(profile, probes, 1 / rate)
    seed = path.telling_seed(profile, pace, len(topology.probed.links[0].nodes), seed)
    async with real_hosts.labs(on) as labs:
        seen = await observe(labs, topology, profile, pace, raw, seed=seed)
    return judge.judge(profile, seen, "alone")


def show(check: LinkCheck, profile: Profile, guest: Mapping[str, Any] | None = None) -> None:
    """Print a check as one table per direction, and the verdict. `guest`: facts of its virtual machine, if any."""
    from tunnelmark.analyse.link import text
    from tunnelmark.lab.backends import describe

    console = output.console()
    console.print(Text.assemble((check.profile, "bold"), f": {profile.title}"), soft_wrap=True)
    console.print(Text(f"made by {describe(profile)}"), soft_wrap=True)
    if guest is not None:
        console.print(Text(f"on {vm.words(guest)}"), soft_wrap=True)
    for way in dict.fromkeys(line.way for line in check.lines):
        rows = [_row(line) for line in check.lines if line.way == way]
        output.table(("", "stated", "follows", "from", "to", "achieved", "", ""), rows, title=f"\n{way}")
    if check.parts:
        rows = [
            (f"{part.name} {part.way}", Text(part.verdict, style=_PARTS[part.verdict]), part.why)
            for part in check.parts
        ]
        output.table(("", "", ""), rows, title="\nWhat this look has shown")
    untested = text.untested([check])
    if check.verdict != "verified":
        said = Text.assemble(("\noutside", "bold red"), f": {check.reason}")
    elif untested:
        said = Text.assemble(("\nnot tested", "yellow"), f": {untested}; nothing is outside of its tolerance")
    elif any(line.ok for line in check.lines):
        said = Text.assemble(("\nshown", "green"), ": the link does what each part of the profile says")
    else:
        said = Text.assemble(("\nnot tested", "yellow"), ": nothing is stated")
    console.print(said, soft_wrap=True)


def _row(line: LinkLine) -> tuple[str | Text, ...]:
    from tunnelmark.analyse.link import text

    figures = (text.value(line, number) for number in (line.expected, line.low, line.high, line.achieved))
    verdict = Text(_WORDS[line.ok], style=_STYLES[line.ok])
    return (text.TITLES[line.name], line.stated, *figures, verdict, line.note)
