"""The lab server may take longer for whatever it is asked about a lab of many nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tunnelmark.lab import client
from tunnelmark.lab.client import LabClient


class Server:
    """It answers everything at once."""

    async def request(self, op: str, fds: Any, **fields: Any) -> dict[str, Any]:
        return {}


@pytest.fixture
def granted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For how many nodes each request was given time, one after the other."""
    found: list[int] = []

    async def in_time(work: Awaitable[Any], otherwise: str, nodes: int = 0) -> Any:
        found.append(nodes)
        return await work

    monkeypatch.setattr(client, "in_time", in_time)
    return found


def test_each_request_about_a_lab_has_time_for_all_its_nodes_and_its_end_too(granted: list[int]) -> None:
    labs = LabClient.__new__(LabClient)  # without cores and groups of its own
    labs._nodes, labs._server = {}, Server()  # type: ignore[assignment]

    async def go() -> None:
        await labs.request("up", lab="large", nodes=[{}] * 31)
        await labs.request("up", lab="small", nodes=[{}] * 3)
        for op in ("join", "count", "down"):
            await labs.request(op, lab="large")
        await labs.request("count", lab="small")
        await labs.request("check")

    asyncio.run(go())
    assert granted == [31, 3, 31, 31, 31, 3, 0]
    assert labs._nodes == {"small": 3}, "and what has ended is forgotten"
