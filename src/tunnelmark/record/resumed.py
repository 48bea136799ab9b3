"""Checks that a run may be resumed: the machine, the programs and the plan are the same, except for more blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tunnelmark.errors import StoreError
from tunnelmark.record import fingerprint_diff, store
from tunnelmark.record.results import PlanInfo


def require_same(folder: Path, now: Mapping[str, Any], *, other_boot: bool = False) -> None:
    """Raise StoreError if the environment (`now`) is not the one in which the results in `folder` were begun.

    The check compares the machine (or each host, if the results are from several hosts), the version of tunnelmark, and
    the programs of the emulator, the VPNs and the workloads; a workload's program may have been installed since.
    `now`: what would be written to `environment.json`.
    `other_boot`: True accepts that the machine was restarted since; with False, a restart is an error as well.
    """
    before, now = store.load_environment(folder), json.loads(json.dumps(now))
    differs = ["vpns"] if before.get("vpns") != now["vpns"] else []
    programs = before.get("workloads")
    if programs is None or any(now["workloads"].get(name) != was for name, was in programs.items()):
        differs.append("workloads")
    kin = fingerprint_diff.kinship(before, now)
    differs += _own_programs(before, now)
    mine, theirs = (_machines(where, memory=kin == "not known") for where in (before, now))
    for name in {**mine, **theirs}:
        was, is_now = mine.get(name, {}), theirs.get(name, {})
        keys = [key for key in {**was, **is_now} if was.get(key) != is_now.get(key)]
        differs += [f"{name}: {key} {was.get(key)}, now {is_now.get(key)}" for key in keys]
    if kin == "other machine":
        differs += [
            str(each) for each in fingerprint_diff.differences(before[fingerprint_diff.KEY], now[fingerprint_diff.KEY])
        ]
    if differs:
        raise StoreError(
            f"{folder} was begun with other programs or on another machine ({'; '.join(differs)})",
            hint="trials of both do not belong in one study: run it again; `tunnelmark merge` joins whole runs",
        )
    if kin == "other boot" and not other_boot:
        raise StoreError(
            f"{folder} was begun before this machine was started again; nothing else of it differs",
            hint="--other-boot goes on all the same, and the report says that its intervals cover several boots",
        )


def add_programs(folder: Path, now: Mapping[str, Any]) -> None:
    """Add programs of workloads that were installed since to the environment of a results folder.

    `now`: as in `require_same`, which has found no other difference.
    """
    before = store.load_environment(folder)
    if before["workloads"] != now["workloads"]:
        store.write_environment(folder, {**before, "workloads": now["workloads"]})


def _own_programs(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return in words whether tunnelmark's versions or the emulators differ, as far as both environments record them."""
    found = []
    mine, theirs = before.get("tunnelmark"), now.get("tunnelmark")
    if mine is not None and theirs is not None and mine != theirs:
        found.append(f"tunnelmark {mine}, now {theirs}")
    was, is_now = (where.get("lab", {}).get("emulator", {}).get("sha256") for where in (before, now))
    # For a study on other hosts, the emulator of the machine that runs the command is recorded, which makes no link.
    if was is not None and is_now is not None and was != is_now and "hosts" not in now:
        found.append("the emulator")
    return found


def _machines(environment: Mapping[str, Any], *, memory: bool) -> dict[str, dict[str, Any]]:
    """Return the machine of an environment, or that of each of its hosts, by name: "machine" or "host NAME".

    `memory`: include the size of the memory; that of hosts is never included. The size differs a little from boot to
    boot. The comparison of fingerprints allows for that, so `memory` is set only without a fingerprint.
    """
    hosts = environment.get("hosts", {})
    found = {f"host {name}": about.get("machine", {}) for name, about in hosts.items()}
    found = found or {"machine": environment.get("machine", {})}
    unsure = () if memory and not hosts else ("memory_bytes",)
    return {
        name: {key: value for key, value in machine.items() if key not in unsure} for name, machine in found.items()
    }


def extend(folder: Path, info: PlanInfo, *, asked: bool = True) -> None:
    """Add blocks to the plan of a results folder, up to the number in `info`; do nothing if `info` adds no blocks.

    The blocks that are there stay as they are, because their order and links depend only on the seed and their numbers.
    `asked`: True if a user, who may have seen results, asks for the blocks; the plan's `extended` then records how many
    blocks there were before. False if the run adds the blocks by its own rule.
    StoreError if anything but the number of blocks would change.
    """
    before = store.load_plan(folder)
    if info.blocks <= before.blocks:
        return
    grown = replace(
        before,
        blocks=info.blocks,
        trials=info.trials,
        replacements=info.replacements,
        extended=(*before.extended, before.blocks) if asked else before.extended,
    )
    if replace(store.as_read(info), extended=grown.extended, attempts=grown.attempts) != grown:
        raise StoreError(
            f"{folder} was begun with another plan: more than its number of blocks would change",
            hint="run the study again, and join both with `tunnelmark merge`",
        )
    store.write_plan(folder, grown)
