"""Work during a block ends with it, and what fails is raised as itself."""

from __future__ import annotations

import asyncio

import pytest

from tunnelmark.run.background import background, together


async def notes(said: list[str], seconds: float = 60.0) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        said.append("cancelled")
        raise
    said.append("done")
    return "result"


async def fails() -> None:
    raise ValueError("mine")


def test_what_has_not_ended_is_cancelled_and_waited_for() -> None:
    async def run() -> list[str]:
        said: list[str] = []
        async with background(notes(said), notes(said, 0.0)) as (_, short):
            assert await short == "result"
        return said

    assert asyncio.run(run()) == ["done", "cancelled"]


def test_an_error_of_the_block_ends_the_work_too() -> None:
    async def run() -> list[str]:
        said: list[str] = []

        async def block() -> None:
            async with background(notes(said)):
                await asyncio.sleep(0)
                await fails()

        with pytest.raises(ValueError, match="mine"):
            await block()
        return said

    assert asyncio.run(run()) == ["cancelled"]


def test_a_task_that_fails_ends_nothing_until_it_is_asked() -> None:
    async def run() -> None:
        async with background(fails(), notes([], 0.01)) as (failed, other):
            assert await other == "result"
            with pytest.raises(ValueError, match="mine"):
                failed.result()

    asyncio.run(run())


def test_together_raises_the_first_failure_as_itself_and_cancels_the_rest() -> None:
    async def run() -> list[str]:
        said: list[str] = []
        with pytest.raises(ValueError, match="mine"):
            await together(notes(said), fails())
        return said

    assert asyncio.run(run()) == ["cancelled"]
