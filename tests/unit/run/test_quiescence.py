"""A run waits for other work to end, within bounds, and says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tunnelmark.run.quiescence import ALL, ONCE, Quiescence


class Machine:
    """A machine whose others take so many cores at each look; a look takes a second of a clock of its own."""

    def __init__(self, cores: Iterator[float], monkeypatch: pytest.MonkeyPatch) -> None:
        self._cores, self.now, self.said = cores, 0.0, list[str]()

        async def sleep(seconds: float) -> None:
            self.now += seconds

        monkeypatch.setattr("tunnelmark.run.quiescence.asyncio.sleep", sleep)

    def look(self) -> float:
        self.now += 1.0
        return next(self._cores)

    def calm(self, *, wanted: bool = True) -> Quiescence:
        return Quiescence(self.said.append, wanted=wanted, look=self.look, clock=lambda: self.now)


def forever(cores: float) -> Iterator[float]:
    while True:
        yield cores


def test_on_a_calm_machine_nothing_is_said_or_waited_for(monkeypatch):
    machine = Machine(forever(0.1), monkeypatch)
    asyncio.run(machine.calm()())
    assert (machine.now, machine.said) == (1.0, [])


def test_it_goes_on_as_soon_as_others_have_ended(monkeypatch):
    machine = Machine(iter([1.5, 1.5, 1.5, 0.1]), monkeypatch)
    asyncio.run(machine.calm()())
    assert machine.now < ONCE / 4
    assert len(machine.said) == 1
    assert "1.50 cores" in machine.said[0]
    assert "--no-wait" in machine.said[0]


def test_what_does_not_end_is_waited_for_less_and_less_and_never_beyond_its_bound(monkeypatch):
    machine = Machine(forever(1.0), monkeypatch)
    waits = machine.calm()
    times = []
    for _ in range(40):
        begun = machine.now
        asyncio.run(waits())
        times.append(machine.now - begun)
    assert ONCE <= times[0] <= ONCE + 2
    assert times == sorted(times, reverse=True)
    assert times[4:] == [0.0] * 36
    assert machine.now < min(ALL, 2 * ONCE + 40)
    assert "going on" in machine.said[1]
    assert "not waited for again" in machine.said[-1]


def test_a_run_waits_no_longer_in_all_than_is_said(monkeypatch):
    machine = Machine(iter([1.0 if place % 50 else 0.0 for place in range(1, 9999)]), monkeypatch)  # calm now and then
    waits = machine.calm()
    for _ in range(60):
        asyncio.run(waits())
    assert machine.now <= ALL + ONCE + 60


def test_it_is_skipped_if_nobody_wants_it(monkeypatch):
    machine = Machine(forever(2.0), monkeypatch)
    asyncio.run(machine.calm(wanted=False)())
    assert (machine.now, machine.said) == (0.0, [])
