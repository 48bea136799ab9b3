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
    """StoreError if the machine, a VPN or a workload's program is not what it was when the results were begun.

    `other_boot`: the machine may have been started again since, as long as nothing else of it differs.
    """
    before, now = store.load_environment(folder), json.loads(json.dumps(now))
    differs = [what for what in ("vpns", "workloads") if before.get(what) != now[what]]
    kin = fingerprint_diff.kinship(before, now)
    # The fingerprint knows how much of the memory the kernel keeps for itself in each boot; this list does not.
    unsure = () if kin == "not known" else ("memory_bytes",)
    mine, theirs = (
        {key: value for key, value in where.get("machine", {}).items() if key not in unsure} for where in (before, now)
    )
    if mine != theirs:
        keys = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
        differs += [f"machine: {key} {mine.get(key)}, now {theirs.get(key)}" for key in keys]
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
