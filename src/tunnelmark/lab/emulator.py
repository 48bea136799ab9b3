"""Runs the emulator `tunnelmark-emulator` on the middle node: finds and starts it, sends commands, reads its reports.

One process carries one link. It prints JSON lines (docs/emulator.md), which are kept as raw output. It ends when its
standard input ends, which the command holds open, or when its node ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from tunnelmark import former_names
from tunnelmark.errors import LabError, MissingPart
from tunnelmark.host.pauses import PausesSeen
from tunnelmark.host.programs import BUILT, search_path
from tunnelmark.lab.emulator_config import configuration
from tunnelmark.lab.link_spec import XDP_MTU, LinkSpec
from tunnelmark.lab.node import Node, Process
from tunnelmark.plan.model import Profile

PROGRAM = "tunnelmark-emulator"
VARIABLE = "TUNNELMARK_EMULATOR"
_PATIENCE = 5.0  # seconds for the emulator to open its ports, or to answer, on a busy machine
_POLL = 0.002  # seconds between two looks at its output
_KEPT = "its output is in {name}.middle.out and {name}.middle.err next to the trial's raw output"
_NOT_KEPT = "`tunnelmark check-link PROFILE --out DIR` keeps what it prints"


def program() -> Path:
    """Return the path of the emulator.

    The environment variable TUNNELMARK_EMULATOR names the emulator. Without the variable, it is in the folder of our
    own programs (`host.programs.BUILT`), or else on `search_path()`. MissingPart if the emulator is not found, or if
    the variable names a file that is not a program.
    """
    named = os.environ.get(VARIABLE) or os.environ.get(former_names.EMULATOR_VARIABLE)
    if named:
        if os.access(named, os.X_OK) and os.path.isfile(named):
            return Path(named)
        raise MissingPart(f"{VARIABLE} names {named}, which is not a program", hint="correct or unset it")
    if os.access(BUILT / PROGRAM, os.X_OK):
        return BUILT / PROGRAM
    if (found := shutil.which(PROGRAM, path=search_path())) is not None:
        return Path(found)
    raise MissingPart(
        f"{PROGRAM}, which carries every link with more than a rate, is not built",
        hint=f"`make setup` builds it with cargo; or name it: {VARIABLE}=/path/to/{PROGRAM}",
    )


class Emulator:
    """The emulator of one link while it runs; `close` ends it."""

    def __init__(self, process: Process, commands: int, output: IO[bytes], complaints: IO[bytes], hint: str) -> None:
        self._hint = hint
        self._process = process
        self._commands = commands
        self._output = output
        self._complaints = complaints
        self._begun = time.monotonic_ns()
        self._told = 0  # how many of the pauses the emulator knows already
        self._requests = 0
        self._saying = asyncio.Lock()  # two long lines at once would mix in the pipe

    @classmethod
    async def start(
        cls, middle: Node, spec: LinkSpec, number: int, profile: Profile, *, seed: int, raw: Path | None
    ) -> Emulator:
        """Start the emulator of link `number` (from 0) on the node `middle`, and wait until it carries the link.

        `seed` decides what it does to each packet. Its output goes to files in the folder `raw`, and is not kept if
        that is None. LabError if it refuses its configuration, or is not ready within 5 seconds.
        """
        name = "emulator" if number == 0 else f"emulator{number}"
        output, complaints = (_file(raw, f"{name}.middle.{kind}") for kind in ("out", "err"))
        ports = spec.doors(number)
        argv = [str(program()), "--config", "-"]
        # AF_XDP costs a third less than a packet socket, carries no super-packets, and gives way where BPF is refused.
        kind = "--port" if spec.super_packets or spec.mtu > XDP_MTU else "--xdp"
        for node, mac in spec.macs(number).items():
            argv += [kind, ports[node], "--mac", f"{ports[node]}={mac}"]
        theirs, ours = os.pipe2(os.O_CLOEXEC)
        with open(theirs, "rb", buffering=0) as commands:
            process = await middle.spawn(argv, stdout=output, stderr=complaints, stdin=commands)
        emulator = cls(process, ours, output, complaints, _KEPT.format(name=name) if raw else _NOT_KEPT)
        try:
            await emulator._say(json.dumps(configuration(profile, ports, seed=seed, link=number)))
            await emulator._until(lambda lines: any("ready" in line for line in lines))
        except BaseException:
            emulator.close()
            raise
        return emulator

    async def zero(self) -> None:
        """Set the link's clock to 0, shortly before this method returns.

        Blackouts and schedules of the profile count from that moment.
        """
        await self._say("zero")
        await self.report()  # the emulator answers in order, so it has restarted the clock by now

    async def tell(self, seen: PausesSeen) -> None:
        """Send the emulator the machine's pauses, so that packets delayed by one do not count as its own lateness."""
        told, self._told = self._told, max(self._told, len(seen.pauses))
        new = [(each.core, each.ran, each.woke) for each in seen.pauses[told:] if each.woke > self._begun]
        await self._say("pauses " + json.dumps({"until": seen.until, "pauses": new}))

    async def report(self, seen: PausesSeen | None = None) -> dict[str, Any]:
        """Return the emulator's report of what it has done up to now (docs/emulator.md), with its `scheduler` added.

        `scheduler`: its scheduling class and priority in words, such as `fifo 10`. `seen`: the machine's pauses up to
        now (see `tell`). LabError if it does not answer within 5 seconds.
        """
        if seen is not None:
            await self.tell(seen)
        # A report that the emulator printed unasked may lack the latest pauses or packets, so the request has a number.
        self._requests += 1
        request = self._requests
        await self._say(f"report {request}")
        lines = await self._until(lambda lines: self._answers(lines, request) is not None)
        scheduler = next(line["ready"]["scheduler"] for line in lines if "ready" in line)
        return {**(self._answers(lines, request) or {}), "scheduler": scheduler}

    def close(self) -> None:
        """End the emulator by closing its standard input, and close its output files."""
        with contextlib.suppress(OSError):
            os.close(self._commands)
        self._output.close()
        self._complaints.close()

    @staticmethod
    def _answers(lines: list[dict[str, Any]], request: int) -> dict[str, Any] | None:
        reports: list[dict[str, Any]] = [line["report"] for line in lines if "report" in line]
        # If two requests came before it looked, it answers the later one only.
        return next((each for each in reports if (each["request"] or 0) >= request), None)

    async def _say(self, line: str) -> None:
        def write() -> None:  # in a thread: a long configuration fills the pipe until it is read
            data = line.encode() + b"\n"
            while data:
                data = data[os.write(self._commands, data) :]

        async with self._saying:
            with contextlib.suppress(
                BrokenPipeError
            ):  # it has ended; the caller that waits for its answer finds out why
                await asyncio.to_thread(write)

    def _lines(self) -> list[dict[str, Any]]:
        content = _content(self._output)
        return [json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines() if line.strip()]

    async def _until(self, holds: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        deadline = time.monotonic() + _PATIENCE
        while not holds(lines := self._lines()):
            if self._process.exit is not None:
                said = _content(self._complaints).decode(errors="replace").strip()
                raise LabError(f"{PROGRAM} ended with code {self._process.exit.code}: {said}", hint=self._hint)
            if time.monotonic() > deadline:
                raise LabError(f"{PROGRAM} did not answer within {_PATIENCE:g} s", hint=self._hint)
            await asyncio.sleep(_POLL)
        return lines


def _file(folder: Path | None, name: str) -> IO[bytes]:
    # Without a folder nothing may be left, however the command ends: a file without a name goes with it.
    return (folder / name).open("w+b") if folder else tempfile.TemporaryFile()


def _content(file: IO[bytes]) -> bytes:
    """Read a whole file without moving its offset: the emulator writes to it through the same open file description."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


async def carry(
    middle: Node, links: Sequence[LinkSpec], profiles: Sequence[Profile], seed: int, raw: Path | None
) -> list[Emulator]:
    """Start an emulator for each emulated link, and return them; [] if the kernel carries all links.

    The caller closes them. If one cannot be started, those that run already are closed, and its error is raised.
    """
    emulators: list[Emulator] = []
    try:
        for number, (spec, profile) in enumerate(zip(links, profiles, strict=True)):
            if spec.emulated:
                emulators.append(await Emulator.start(middle, spec, number, profile, seed=seed, raw=raw))
    except BaseException:
        for emulator in emulators:
            emulator.close()
        raise
    return emulators
