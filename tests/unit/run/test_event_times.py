"""An outage lasts at least as long as was asked for, however long its beginning took: the end waits for it."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, cast

from tunnelmark.run import events
from tunnelmark.workloads.base import Event

SLOW = 0.3  # seconds that taking the link down takes, more than the outage


class SlowHand:
    """Takes long to begin an outage, and no time to end it."""

    async def do(self, event: Event) -> dict[str, Any]:
        if event.kind == "link-down":
            await asyncio.sleep(SLOW)
        return {}


def test_a_link_that_goes_down_slowly_is_down_as_long_as_was_asked_for(tmp_path: Path) -> None:
    asked = [Event(0.0, "link-down", "b"), Event(0.1, "link-up", "b"), Event(0.15, "link-down", "b")]
    hand = cast(Any, SlowHand())
    asyncio.run(events._in_turn(hand, asked, time.monotonic(), tmp_path / "events"))
    down, up, again = map(json.loads, (tmp_path / "events").read_text().splitlines())
    assert down["ended"] - down["begun"] >= SLOW
    assert up["begun"] - down["ended"] >= 0.1
    assert again["begun"] >= up["ended"], "what is late begins at once, and is not late by what was before it"
