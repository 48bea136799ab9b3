"""Requests over a channel: each gets its own answer, a refusal is an error, and an end is told to whoever waits."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tunnelmark.errors import LabError
from tunnelmark.lab import channel, rpc


class Both:
    """A client, and the other end of its channel, which a test plays."""

    def __init__(self) -> None:
        ours, self.other = channel.pair()
        self.notices: list[rpc.Message] = []
        self.answers: list[rpc.Message] = []
        self.ends = 0
        self.client = rpc.Client(
            ours,
            refused=lambda reason: LabError(f"refused: {reason}"),
            gone=lambda reason: LabError(f"gone: {reason}"),
            on_notice=lambda message, _: self.notices.append(message),
            on_answer=self.answers.append,
            on_end=self._end,
        )

    def _end(self) -> None:
        self.ends += 1
        self.client.fail(LabError("ended"))

    def asked(self) -> rpc.Message:
        received = channel.receive(self.other)
        assert received is not None
        return received[0]


def play(body: Callable[[Both], Awaitable[None]]) -> None:
    async def run() -> None:
        both = Both()
        try:
            await asyncio.wait_for(body(both), 30)
        finally:
            both.client.close()
            both.other.close()

    asyncio.run(run())


async def ask(both: Both, *ops: str) -> list[asyncio.Task[Any]]:
    """Requests that have been sent."""
    tasks = [asyncio.create_task(both.client.request(op, place=place)) for place, op in enumerate(ops)]
    await asyncio.sleep(0)
    return tasks


def test_answers_may_come_in_any_order() -> None:
    async def body(both: Both) -> None:
        first, second = await ask(both, "one", "two")
        asked = [both.asked(), both.asked()]
        assert [(one["op"], one["place"]) for one in asked] == [("one", 0), ("two", 1)]
        for request in reversed(asked):
            channel.send(both.other, {"id": request["id"], "to": request["op"]})
        assert ((await first)["to"], (await second)["to"]) == ("one", "two")
        assert [one["to"] for one in both.answers] == ["two", "one"]

    play(body)


def test_a_refusal_is_the_error_of_its_request_only() -> None:
    async def body(both: Both) -> None:
        first, second = await ask(both, "one", "two")
        channel.send(both.other, {"id": both.asked()["id"], "error": "no"})
        channel.send(both.other, {"id": both.asked()["id"]})
        with pytest.raises(LabError, match="refused: no"):
            await first
        await second

    play(body)


def test_what_is_no_answer_is_a_notice() -> None:
    async def body(both: Both) -> None:
        (asked,) = await ask(both, "one")
        channel.send(both.other, {"hello": "a"})
        channel.send(both.other, {"id": both.asked()["id"]})
        await asked
        assert both.notices == [{"hello": "a"}]

    play(body)


def test_the_answer_to_whoever_was_cancelled_is_dropped() -> None:
    async def body(both: Both) -> None:
        first, second = await ask(both, "one", "two")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        for _ in range(2):
            channel.send(both.other, {"id": both.asked()["id"]})
        await second

    play(body)


def test_an_end_is_told_once_and_fails_what_is_open() -> None:
    async def body(both: Both) -> None:
        (asked,) = await ask(both, "one")
        both.other.close()
        with pytest.raises(LabError, match="ended"):
            await asked
        assert both.ends == 1

    play(body)


def test_a_request_after_the_end_says_that_the_other_side_is_gone() -> None:
    async def body(both: Both) -> None:
        both.other.shutdown(socket.SHUT_RDWR)
        with pytest.raises(LabError, match="gone: "):
            await both.client.request("one")

    play(body)
