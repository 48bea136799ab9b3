"""Work that goes on during a block of code, and ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

_Result = TypeVar("_Result")


@asynccontextmanager
async def background(*work: Coroutine[Any, Any, Any]) -> AsyncIterator[tuple[asyncio.Task[Any], ...]]:
    """Tasks for the length of the block: what has not ended by then is cancelled, and its end is waited for.

    What a task raises is its caller's to ask for (`task.result()`, or by awaiting it): unlike in a TaskGroup, one that fails does
    not end the others, and its error is raised as itself and not in a group.
    """
    tasks = tuple(asyncio.create_task(one) for one in work)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def together(*work: Coroutine[Any, Any, Any]) -> None:
    """All of some work at once; the first failure cancels the rest and is raised as itself."""
    async with background(*work) as tasks:
        await asyncio.gather(*tasks)


async def to_its_end(work: Awaitable[_Result]) -> _Result:
    """What has begun is carried out even if its caller is stopped meanwhile: what undoes it comes after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
