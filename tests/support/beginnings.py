"""Waits for a sign that something has begun, and for its end at the same time: then a failure is said at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.asking import PATIENCE
from tunnelmark.lab.node import Process


async def came(sign: Callable[[], bool], doing: asyncio.Task[Any]) -> bool:
    """Wait for a sign of what a task does, or for the task's end, whichever is first; whether the sign came. The task's error is raised."""
    while not sign():
        if doing.done():
            doing.result()
            return sign()
        await asyncio.sleep(0.01)
    return True


async def begun(doing: asyncio.Task[Any], sign: Callable[[], bool], said: Callable[[], str] = str) -> None:
    """Until there is a sign of what a task does, looked for every 10 ms.

    Where the task ends before that its error is raised; if it had none, an AssertionError with its result and what was `said`.
    """
    if not await came(sign, doing):
        raise AssertionError(f"it ended without a sign of its beginning: {doing.result()} {said()}")


async def listening(tcpdump: Process, said: Path) -> None:
    """Until a tcpdump captures whose standard error is in that file."""
    ending = asyncio.create_task(tcpdump.wait())
    try:
        async with asyncio.timeout(PATIENCE):
            await begun(ending, lambda: "listening" in said.read_text(), said.read_text)
    finally:
        ending.cancel()
