"""What must hold before a run is resumed: the same machine and programs, and the same plan except for more blocks."""

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
    """StoreError if the machine, tunnelmark, the emulator, a VPN or a workload's program is not what it was when the results were begun.

    Of results from several hosts each one's machine counts. `other_boot`: the machine may have been started again since, as long as nothing else of it differs.
    """
    before, now = store.load_environment(folder), json.loads(json.dumps(now))
    differs = [what for what in ("vpns", "workloads") if before.get(what) != now[what]]
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


def _own_programs(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs of this program's version and its emulator, where both are recorded."""
    found = []
    mine, theirs = before.get("tunnelmark"), now.get("tunnelmark")
    if mine is not None and theirs is not None and mine != theirs:
        found.append(f"tunnelmark {mine}, now {theirs}")
    was, is_now = (where.get("lab", {}).get("emulator", {}).get("sha256") for where in (before, now))
    # Of a study on other hosts it is the emulator of the machine with the command that is recorded, which makes no link.
    if was is not None and is_now is not None and was != is_now and "hosts" not in now:
        found.append("the emulator")
    return found


def _machines(environment: Mapping[str, Any], *, memory: bool) -> dict[str, dict[str, Any]]:
    """The machine of an environment, or that of each of its hosts, by what it is called.

    How much of the memory the kernel keeps for itself differs from boot to boot. A fingerprint knows that, so `memory` counts only where there
    is none, and that of hosts does not: theirs are not recorded.
    """
    hosts = environment.get("hosts", {})
    found = {f"host {name}": about.get("machine", {}) for name, about in hosts.items()}
    found = found or {"machine": environment.get("machine", {})}
    unsure = () if memory and not hosts else ("memory_bytes",)
    return {
        name: {key: value for key, value in machine.items() if key not in unsure} for name, machine in found.items()
    }


def extend(folder: Path, info: PlanInfo, *, asked: bool = True) -> None:
    """Have a results folder ask for the blocks of `info` from now on, where those are more than before.

    The blocks that it has stay as they are, for their order and links depend on seed and number alone. `asked`: by a user, who
    may have seen results; else by the run's own rule. StoreError if anything but the number of blocks would change.
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
