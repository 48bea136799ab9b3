"""`tunnelmark list`: prints the VPNs, arms, workloads, profiles, topologies or studies that one can choose from."""

from __future__ import annotations

from typing import Any

import click

from tunnelmark import registry
from tunnelmark.cli import binary_overrides
from tunnelmark.cli.output import as_json, table
from tunnelmark.errors import MissingPart
from tunnelmark.host.programs import Requirement, part_version
from tunnelmark.lab.backends import backend_of, describe
from tunnelmark.packages import status
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_study, load_topology

_CARRIERS = {"shaper": "the kernel", "emulator": "tunnelmark-emulator", "netem": "the kernel's netem"}
_JSON = click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")


@click.group("list")
def list_() -> None:
    """List VPNs, arms, workloads, profiles, topologies or studies."""


@list_.command()
@_JSON
@binary_overrides.option
def vpns(json_: bool) -> None:
    """List the VPNs that a lab can deploy: their version here, or how to install them."""
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "title": driver.title,
            **_version(registry.vpn_part(driver)),
            "homepage": driver.homepage,
            "options": sorted(driver.options.model_fields),
            "arms": [name, *driver.variants],
        }
        for name, driver in registry.vpns().items()
    ]
    if json_:
        as_json(rows)
        return
    table(
        ("VPN", "title", "version", "options"),
        [
            (r["name"], r["title"], r["version"] or f"missing: {r['install']}", ", ".join(r["options"]) or "-")
            for r in rows
        ],
    )
    click.echo("\nsets of options that have a name: tunnelmark list arms")


@list_.command()
@_JSON
@binary_overrides.option
def arms(json_: bool) -> None:
    """List the arms that have a name: each VPN as shipped, and sets of its options."""
    rows: list[dict[str, Any]] = []
    parts = registry.parts()
    for name, (driver, options) in registry.arms().items():
        part = parts[name]
        rows.append(
            {"name": name, "vpn": driver.name, "options": dict(options), **_version(part), "recipe": part.recipe}
        )
    if json_:
        as_json(rows)
        return
    table(
        ("arm", "VPN", "options", "version"),
        [
            (
                r["name"],
                r["vpn"],
                ", ".join(f"{key} = {value}" for key, value in r["options"].items()) or "as shipped",
                r["version"] or f"missing: {r['install']}",
            )
            for r in rows
        ],
    )


@list_.command()
@_JSON
def workloads(json_: bool) -> None:
    """List the kinds of traffic, and what each measures."""
    rows: list[dict[str, Any]] = []
    for name, kind in registry.workloads().items():
        rows.append(
            {
                "name": name,
                "title": kind.title,
                "install": missing.hint if (missing := status.missing(kind.part)) is not None else None,
                "options": sorted(kind.options.model_fields),
                "metrics": [
                    {
                        "name": metric.name,
                        "unit": metric.unit,
                        "title": metric.title,
                        "better": metric.better,
                        "primary": metric.primary,
                    }
                    for metric in kind.metrics
                ],
            }
        )
    if json_:
        as_json(rows)
        return
    table(
        ("workload", "title", "judged by", "options"),
        [(r["name"], _title(r), _judged(r["metrics"]), ", ".join(r["options"]) or "-") for r in rows],
    )


@list_.command()
@_JSON
def profiles(json_: bool) -> None:
    """List the link profiles: what links can do to packets."""
    files = Files.standard()
    loaded = [load_profile(name, files) for name in files.names("profile")]
    if json_:
        as_json(
            [
                {
                    "name": p.name,
                    "title": p.title,
                    "source": p.source,
                    "rate": p.rate,
                    "auto": p.auto is not None,
                    "queue": p.queue,
                    "link": describe(p),
                }
                for p in loaded
            ]
        )
        return
    table(("profile", "title", "carried by"), [(p.name, p.title, _CARRIERS[backend_of(p)]) for p in loaded])
    click.echo("\nseveral are joined by +, such as wifi-good+gigabit; one of your own: tunnelmark new profile NAME")


@list_.command()
@_JSON
def topologies(json_: bool) -> None:
    """How nodes can be joined."""
    files = Files.standard()
    loaded = [load_topology(name, files) for name in files.names("topology")]
    if json_:
        as_json(
            [
                {
                    "name": t.name,
                    "title": t.title,
                    "nodes": list(t.nodes),
                    "links": {link.name: list(link.nodes) for link in t.links},
                }
                for t in loaded
            ]
        )
        return
    table(
        ("topology", "title", "nodes", "links"),
        [
            (t.name, t.title, " ".join(t.nodes), ", ".join(f"{link.name}: {'-'.join(link.nodes)}" for link in t.links))
            for t in loaded
        ],
    )


@list_.command()
@_JSON
def studies(json_: bool) -> None:
    """List the studies that can be run by name."""
    files, catalogue = Files.standard(), registry.catalogue()
    rows: list[dict[str, Any]] = []
    for name in files.names("study"):
        study = load_study(name, files, catalogue)
        rows.append(
            {
                "name": name,
                "title": study.title,
                "description": study.description,
                "blocks": study.blocks,
                "arms": [arm.name for arm in study.arms],
                "workloads": [use.name for use in study.workloads],
                "profiles": [profile.name for profile in study.profiles],
                "topologies": [topology.name for topology in study.topologies],
                "file": str(files.find("study", name)),
            }
        )
    if json_:
        as_json(rows)
        return
    table(
        ("study", "title", "blocks", "arms", "workloads", "profiles"),
        [
            (r["name"], r["title"], str(r["blocks"]), *(", ".join(r[key]) for key in ("arms", "workloads", "profiles")))
            for r in rows
        ],
    )


def _version(part: Requirement) -> dict[str, str | None]:
    """Return the version of a part on this machine, or else how to install it."""
    try:
        return {"version": part_version(part), "install": None}
    except MissingPart as missing:
        return {"version": None, "install": status.from_makers(part) or missing.hint}


def _title(row: dict[str, Any]) -> str:
    return f"{row['title']} (missing: {row['install']})" if row["install"] else str(row["title"])


def _judged(metrics: list[dict[str, Any]]) -> str:
    primary = (metric for metric in metrics if metric["primary"])
    return ", ".join(f"{each['name']} ({each['unit']})" if each["unit"] else str(each["name"]) for each in primary)
