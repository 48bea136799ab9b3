"""The machine's cores while a command's lab stands: kept awake by loops, and watched by clocks where something is measured."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError, MissingPart
from tunnelmark.lab import awake, cgroups, stillness


class Cores:
    """Belongs to a keeper: `files` are for its process, `folders` for its janitor."""

    def __init__(self, name: str) -> None:
        self._asleep = awake.unwanted()  # why they are not kept awake
        self._place = awake.Place(cgroups.find(), name)
        self._counts = awake.memory(os.sched_getaffinity(0))
        self._loops: awake.Loops | None = None
        self._clocks: stillness.Clocks | None = None
        self.files = () if self._asleep else (self._counts,)
        self.folders: tuple[Path, ...] = self._place.folders

    def begun(self, said: dict[str, Any]) -> dict[str, Any]:
        """The keeper's process is ready and has said so; what the record should hold."""
        record = {"awake": False, "awake_not": self._asleep} | said if self._asleep else said
        if record["awake"]:
            self._loops = awake.Loops(self._counts, self._place)
            awake.STANDING.append(self._loops)
        return record

    def watch(self) -> str | None:
        """See from now on when the machine itself stands still; why that cannot be seen, if it cannot."""
        try:
            self._clocks = self._clocks or stillness.start()
        except (LabError, MissingPart) as error:
            return error.message
        return None

    async def seen(self) -> stillness.Seen | None:
        """The pauses since `watch`; None where nothing sees them."""
        if self._clocks is None:
            return None
        try:
            return await asyncio.to_thread(self._clocks.seen)
        except LabError:  # somebody has ended them: a trial does not fail for that, its figures are not there
            return None

    def end(self) -> None:
        """Forget the loops, which end with the keeper, and end the clocks. To be called when the keeper is about to end."""
        os.close(self._counts)
        if self._loops is not None:
            self._loops.close()
            self._place.hurry()
        if self._clocks is not None:
            self._clocks.close()
