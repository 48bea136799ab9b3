"""Runs coroutines in the background of an `async with` statement, and ends them with the statement."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

_Result = TypeVar("_Result")


@asynccontextmanager
async def background(*work: Coroutine[Any, Any, Any]) -> AsyncIterator[tuple[asyncio.Task[Any], ...]]:
    """Run coroutines as tasks during the body of the `async with` statement; at its end, cancel those that still run.

    The statement ends when all tasks have ended. The caller must ask for a task's error, by `task.result()` or by
    awaiting the task. Unlike in a TaskGroup, a task that fails does not end the others, and its error is raised as
    itself and not in a group.
    """
    tasks = tuple(asyncio.create_task(one) for one in work)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def together(*work: Coroutine[Any, Any, Any]) -> None:
    """Run all coroutines together and wait for them; the first error cancels the others, and is raised as itself."""
    async with background(*work) as tasks:
        await asyncio.gather(*tasks)


async def to_its_end(work: Awaitable[_Result]) -> _Result:
    """Wait until `work` has ended, even if the caller is cancelled meanwhile, and return its result.

    If the caller is cancelled, CancelledError is raised only after `work` has ended. So code that undoes the work
    starts after it. A second cancellation ends the wait at once, while `work` goes on.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
