"""`tunnelmark doctor`: says whether this machine can run a lab, and what to do about missing parts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

import click
from rich.text import Text

from tunnelmark import registry
from tunnelmark.cli import output
from tunnelmark.cli.measurement_lock import alone
from tunnelmark.cli.output import as_json, table
from tunnelmark.doctor.checks import Check, examine
from tunnelmark.doctor.performance import Measured, judge, measure, verdicts
from tunnelmark.host.programs import Requirement
from tunnelmark.packages.status import from_makers

_STYLES = {"ok": "green", "warn": "yellow", "missing": "bold red", "absent": "dim"}


@click.command()
@click.option(
    "--measure",
    "measured",
    is_flag=True,
    help="Also measure what this machine can do, under load: takes half a minute.",
)
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
def doctor(measured: bool, json_: bool) -> int:
    """Say what this machine can do, and what to do about the rest.

    Looks at the machine, tries what a lab needs in namespaces of a child process, and changes nothing. With --measure it
    also loads a lab, and measures what the bare link and the emulator carry, and how late the emulator and the machine
    itself are. Exit code 2 when an essential part is missing.
    """
    parts = {name: registry.vpn_part(driver) for name, driver in registry.vpns().items() if driver.programs}
    checks = [_advised(check, parts) for check in examine(list(parts.values()))]
    missing = [check for check in checks if check.state == "missing"]
    seen = _measure() if measured and not missing else None
    if seen is not None:
        checks += judge(seen)
    if json_:
        content: dict[str, Any] = {"ready": not missing, "checks": [asdict(check) for check in checks]}
        if seen is not None:
            content |= {"measured": asdict(seen), "verdicts": list(verdicts(seen))}
        as_json(content)
    else:
        rows: list[tuple[str | Text, ...]] = []
        for group, members in groupby(checks, key=lambda check: check.group):
            rows += [(Text(group, style="bold"), "", "", ""), *(_row(check) for check in members)]
        table(("need", "state", "found", "what to do"), rows)
        for line in verdicts(seen) if seen is not None else ():
            click.echo(line)
        for line in summary(checks):
            click.echo(line)
    return 2 if missing else 0


def _measure() -> Measured:
    console = output.console(stderr=True)
    with alone(console, "doctor --measure", seconds=60), console.status("measuring") as status:

        def say(what: str) -> None:
            status.update(f"measuring: {what}")
            if not console.is_terminal:
                console.print(f"measuring: {what}", soft_wrap=True)

        return asyncio.run(measure(say))


def _advised(check: Check, parts: Mapping[str, Requirement]) -> Check:
    """Return the check; if it misses a VPN that only its makers distribute, the hint says how to get it."""
    if check.group != "vpns" or check.state != "warn":
        return check
    return replace(check, hint=from_makers(parts[check.name]) or check.hint)


def _row(check: Check) -> tuple[str | Text, ...]:
    return f"  {check.name}", Text(check.state, style=_STYLES[check.state]), check.value, check.hint


def summary(checks: Sequence[Check]) -> tuple[str, ...]:
    """Return lines that say whether this machine can run a lab, and which VPNs are not installed."""
    missing = [check.name for check in checks if check.state == "missing"]
    if missing:
        return ("not ready: no lab can run without " + ", ".join(missing),)
    warnings = [check.name for check in checks if check.state == "warn" and check.group != "vpns"]
    absent = [check.name for check in checks if check.state == "warn" and check.group == "vpns"]
    said = "ready, with reservations: " + ", ".join(dict.fromkeys(warnings)) if warnings else "ready"
    if absent:
        return (
            said,
            f"not installed: {', '.join(absent)} (`tunnelmark packages list` says how; no study needs them all)",
        )
    return (said,)
