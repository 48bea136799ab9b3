"""Where the emulator is looked for, and when its own reports void a trial."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tunnelmark.errors import MissingPart
from tunnelmark.host import programs
from tunnelmark.lab import emulator
from tunnelmark.model import emulator_health
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Profile
from tunnelmark.units import Duration


def program(folder: Path, name: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No emulator is built, named, or on PATH."""
    monkeypatch.delenv(emulator.VARIABLE, raising=False)
    monkeypatch.setattr(emulator, "BUILT", tmp_path / "target")
    monkeypatch.setattr(programs, "BUILT", tmp_path / "target")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def test_what_the_variable_names_comes_first_then_the_build_then_path(nowhere, monkeypatch):
    on_path = program(nowhere, "bin/tunnelmark-emulator")
    assert emulator.program() == on_path
    built = program(nowhere, "target/tunnelmark-emulator")
    assert emulator.program() == built
    named = program(nowhere, "mine")
    monkeypatch.setenv(emulator.VARIABLE, str(named))
    assert emulator.program() == named


def test_without_one_the_hint_says_how_to_build_it(nowhere):
    with pytest.raises(MissingPart) as caught:
        emulator.program()
    assert "make setup" in caught.value.hint
    assert emulator.VARIABLE in caught.value.hint


def test_a_variable_that_names_no_program_is_told(nowhere, monkeypatch):
    program(nowhere, "bin/tunnelmark-emulator")
    monkeypatch.setenv(emulator.VARIABLE, str(nowhere / "gone"))
    with pytest.raises(MissingPart) as caught:
        emulator.program()
    assert "unset" in caught.value.hint


def test_a_report_is_what_was_asked_for_and_not_one_printed_by_itself_before(tmp_path):
    """The one by itself may be from before the pauses that were said, whose time would then count as the emulator's."""
    lines: list[dict[str, Any]] = [{"ready": {"scheduler": "fifo 10"}}]
    process: Any = SimpleNamespace(exit=None)
    read, write = os.pipe()
    with (
        (tmp_path / "out").open("w+b") as output,
        (tmp_path / "err").open("w+b") as complaints,
        os.fdopen(read) as asked,
    ):
        running = emulator.Emulator(process, write, output, complaints, "")

        async def printed(*requests: int | None) -> None:
            lines.extend({"report": {"request": request, "place": len(lines)}} for request in requests)
            text = "".join(json.dumps(line) + "\n" for line in lines).encode()
            os.pwrite(output.fileno(), text, 0)
            await asyncio.sleep(0.05)

        async def run() -> None:
            await printed(None)
            for number, later in ((1, 1), (2, 2)):
                answer = asyncio.ensure_future(running.report())
                assert await asyncio.to_thread(asked.readline) == f"report {number}\n"
                await printed(None)
                assert not answer.done()
                await printed(later, None)
                assert (await answer)["request"] == number

        asyncio.run(run())
        running.close()


def profile(way: Direction, **more) -> Profile:
    return Profile("p", "T", "S", way, way, **more)


def report(p99: float = 10.0, count: int = 100, **more: int) -> dict:
    ports = {name: more.get(name, 0) for name in ("tx_dropped", "rx_dropped", "socket_dropped", "refused")}
    dropped = {"loss": 7, "memory": more.get("memory", 0), "oversize": more.get("oversize", 0)}
    direction = {"name": "a to b", "lateness_us": {"count": count, "p99": p99, "max": p99}, "dropped": dropped}
    return {"directions": [direction], "ports": [{"name": "a.0", **ports}]}


SHORT, LONG = profile(Direction(delay=Duration(0.001))), profile(Direction(delay=Duration(0.3)))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (report(), None),
        (report(p99=1500), None),  # what lateness means is for `model.grades` to say
        (report(memory=2), "2 packets"),
        (report(socket_dropped=1, oversize=1, refused=1), "3 packets"),
    ],
)
def test_what_the_emulator_lost(found, said):
    trouble = emulator_health.trouble([found])
    assert trouble is None if said is None else said in str(trouble)


def test_what_could_not_be_sent_to_a_node_that_an_event_took_away_is_no_loss():
    lost = report(tx_dropped=5, refused=2)
    assert emulator_health.trouble([lost], away={"a.0"}) is None
    assert "7 packets" in str(emulator_health.trouble([lost], away={"b.0"}))
    assert "7 packets" in str(emulator_health.trouble([lost]))
    assert "4 packets" in str(emulator_health.trouble([report(tx_dropped=5, socket_dropped=4)], away={"a.0"}))


def test_a_long_delay_may_be_late_by_more():
    assert emulator_health.bound(LONG) == 15_000
    assert emulator_health.bound(SHORT) == 1000


def test_an_emulator_that_lost_packets_and_was_refused_priority_says_so():
    refused = report(memory=1) | {"scheduler": "other (fifo 10: Operation not permitted (os error 1))"}
    assert "without real-time priority" in str(emulator_health.trouble([refused]))
    granted = report(memory=1) | {"scheduler": "fifo 10"}
    assert "priority" not in str(emulator_health.trouble([granted]))
