"""`tunnelmark doctor`: says whether this machine can run a lab, and what to do where it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

import click
from rich.text import Text

from tunnelmark import registry
from tunnelmark.cli.output import as_json, table
from tunnelmark.lab.doctor import Check, examine
from tunnelmark.lab.programs import Part
from tunnelmark.peers.standing import from_makers

_STYLES = {"ok": "green", "warn": "yellow", "missing": "bold red", "absent": "dim"}


@click.command()
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
def doctor(json_: bool) -> int:
    """Say what this machine can do, and what to do about the rest.

    Looks at the machine, tries what a lab needs in namespaces of a child process, and changes nothing. Exit code 2
    when an essential part is missing.
    """
    parts = {name: registry.vpn_part(driver) for name, driver in registry.vpns().items() if driver.programs}
    checks = [_advised(check, parts) for check in examine(list(parts.values()))]
    missing = [check for check in checks if check.state == "missing"]
    if json_:
        as_json({"ready": not missing, "checks": [_plain(check) for check in checks]})
    else:
        rows: list[tuple[str | Text, ...]] = []
        for group, members in groupby(checks, key=lambda check: check.group):
            rows += [(Text(group, style="bold"), "", "", ""), *(_row(check) for check in members)]
        table(("need", "state", "found", "what to do"), rows)
        click.echo(_verdict(missing, [check for check in checks if check.state == "warn"]))
    return 2 if missing else 0


def _advised(check: Check, parts: Mapping[str, Part]) -> Check:
    """What no registry carries cannot be installed by a command of ours."""
    if check.group != "vpns" or check.state != "warn":
        return check
    return replace(check, hint=from_makers(parts[check.name]) or check.hint)


def _plain(check: Check) -> dict[str, str]:
    return {
        "group": check.group,
        "name": check.name,
        "state": check.state,
        "value": check.value,
        "hint": check.hint,
    }


def _row(check: Check) -> tuple[str | Text, ...]:
    return f"  {check.name}", Text(check.state, style=_STYLES[check.state]), check.value, check.hint


def _verdict(missing: list[Check], warnings: list[Check]) -> str:
    if missing:
        return "not ready: no lab can run without " + ", ".join(check.name for check in missing)
    if warnings:
        return "ready, with reservations: " + ", ".join(check.name for check in warnings)
    return "ready"
