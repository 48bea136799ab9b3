"""Records kernel and user stacks of both ends during the traffic, by perf, and keeps them folded, for flame graphs.

One `perf record` on the host samples every processor by its clock, with an event for the control group of each end. If
each end has processors that no other node uses, a third event samples the kernel there, for its work outside of the
lab's processes (see docs/stacks.md). When the traffic is over, perf's data is folded into `watch.stacks.source.folded`
and `watch.stacks.target.folded`; `watch.stacks.json` has the method (`unwinding`) and the numbers of samples.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import mmap
import os
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tunnelmark.errors import LabError
from tunnelmark.host.programs import find
from tunnelmark.model.metrics import Sample
from tunnelmark.model.stack_kinds import shares_of
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Turn, both

FREQUENCY = 499
"""Samples per second of each processor; a prime number, so that the sampling does not coincide with periodic work."""

FILES = {side: f"watch.stacks.{side}.folded" for side in ("source", "target")}
"""The files of folded stacks in a trial's raw output, by side."""

KINDS_OF_DAEMONS = {
    "stacks_tun_read": "TUN read",
    "stacks_tun_write": "TUN write",
    "stacks_send": "socket send",
    "stacks_receive": "socket receive",
    "stacks_cryptography": "cryptography",
}
"""The kinds of daemons' samples (`model.stack_kinds`) reported as metrics, by the metric's name without the side."""

PACKAGES = ("linux-perf",)
"""The Debian packages that bring perf."""

_PREFIX, _DATA, _LOG, _HOW = "watch.stacks", "watch.stacks.data", "watch.stacks.err", "watch.stacks.json"
_BEGIN = 10.0  # seconds for perf to look at all processes and say that it records
_END = 30.0  # seconds for perf to write what it has, and again without a further stack while these are folded
_BUFFER = "4M"  # of a processor: a second of stacks, in case perf has to wait while other processes are busy
_FIELDS = "comm,pid,tid,cpu,time,event,ip,sym,dso"
_REFUSED = "perf needs CONFIG_CGROUP_PERF, and its control groups in the v2 hierarchy; see docs/stacks.md"

UNWINDING = {"fp": "fp", "dwarf": "dwarf,8192"}
"""The options of perf for finding a function's callers. `fp`: by frame pointers, which Go programs have. `dwarf`: by
tables, from a copy of 8 KiB of the stack. Debian's C libraries and programs, and Rust programs, have tables but no
frame pointers; static Go programs have no tables."""

_GO = b"\xff Go buildinf:"
"""What every Go program since Go 1.13 contains (Go's debug/buildinfo)."""

_ALIVE = '[ "$PPID" = "$0" ] && exec "$@"'
"""A shell script to start a program, unless the parent died before the kernel was asked to kill it with the parent."""


def require() -> None:
    """Raise MissingPart if a needed program is missing, so that it is reported before a run and not in each trial."""
    find("perf", PACKAGES)
    find("setpriv", ("util-linux",))
    find("tunnelmark-flame")


class Stacks:
    """The recording of the stacks of one trial, by perf."""

    def __init__(self, context: CollectorContext) -> None:
        self._context = context
        groups = [context.nodes[node].group for node in context.ends.values()]
        if any(group is None for group in groups):
            raise LabError("stacks of one node need cgroup v2, which this machine does not have", hint=_REFUSED)
        self._groups = [f"{group.parent.name}/{group.name}" for group in groups if group is not None]
        self._how = unwinding(pid for node in context.ends.values() for pid in context.daemons[node])
        self._daemons = {side: frozenset(threads(context.daemons[node])) for side, node in context.ends.items()}
        self._own = own_cores({name: node.cores for name, node in context.nodes.items()}, context.ends)
        self._perf: subprocess.Popen[bytes] | None = None
        self._control = -1  # perf ends when this end of the pipe is closed

    async def begin(self) -> None:
        """Start perf, and wait until it records; raises LabError with perf's output if it does not."""
        names = [f"cpu-clock/name={side}/" for side in self._context.ends]
        names += ["cpu-clock/name=core/k"] if self._own else []  # the kernel's part of what all tasks do
        groups = [*self._groups, *([""] if self._own else [])]  # an event without a group sees every task
        ours, its = os.pipe(), os.pipe()
        argv = [str(find("perf", PACKAGES)), "record", "-a", "-F", str(FREQUENCY), "-e", ",".join(names)]
        argv += ["-G", ",".join(groups), "--no-buildid", "--no-buildid-cache", "-o", str(self._context.raw / _DATA)]
        argv += ["--call-graph", UNWINDING[self._how], "-m", _BUFFER]
        argv += ["-D", "-1", f"--control=fd:{ours[0]},{its[1]}"]  # begins on command, and says so
        with (self._context.raw / _LOG).open("wb") as log:
            self._perf = subprocess.Popen(
                bound_to_us(argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(ours[0], its[1]),
                start_new_session=True,  # Ctrl-C is for the command, which ends it
            )
        os.close(ours[0])
        os.close(its[1])
        try:
            os.write(ours[1], b"enable\n")
            answer = await asyncio.to_thread(_next, its[0], _BEGIN, "answer")
        except OSError:  # it ended before it could read, or says nothing in time
            answer = b""
        finally:
            os.close(its[0])
        self._control = ours[1]
        if not answer.startswith(b"ack"):
            await self._stop(signal.SIGKILL)
            raise LabError(f"perf does not record: {self._said()}", hint=_REFUSED)

    async def sample(self) -> None:
        """Do nothing: perf records by itself."""

    async def end(self) -> Collected:
        """Stop perf, fold what it has recorded, and return the numbers of samples; a note says why if that fails."""
        cpu = await self._stop(signal.SIGINT)
        data = self._context.raw / _DATA
        try:
            found = await asyncio.to_thread(fold, data, self._context.raw / _PREFIX, self._own)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            why = f"the recorded stacks could not be folded: {error}; perf said: {self._said()}"
            return Collected(notes={f"stacks_{side}": why for side in self._context.ends}, cpu=cpu)
        finally:
            data.unlink(missing_ok=True)
        (self._context.raw / _LOG).unlink(missing_ok=True)
        (self._context.raw / _HOW).write_text(json.dumps({"unwinding": self._how, **found}) + "\n")
        samples = [Sample(f"stacks_{side}", float(found[side]["samples"])) for side in self._context.ends]
        for side, daemons in self._daemons.items():
            shares = (
                shares_of((self._context.raw / FILES[side]).read_text(errors="replace"), daemons) if daemons else {}
            )
            samples += [Sample(f"{name}_{side}", shares[said]) for name, said in KINDS_OF_DAEMONS.items() if shares]
        return Collected(samples=tuple(samples), cpu=cpu)

    async def _stop(self, number: int) -> float:
        """End perf, and return the CPU seconds that it used."""
        if self._perf is None:
            return 0.0
        perf, self._perf = self._perf, None
        os.kill(perf.pid, number)  # it is ours until it is waited for, even if it has ended
        cpu = await asyncio.to_thread(_reap, perf)
        os.close(self._control)
        return cpu

    def _said(self) -> str:
        said = (self._context.raw / _LOG).read_text(errors="replace").split("\n")
        return " ".join(line.strip() for line in said if line.strip())[-400:] or "nothing"


def threads(processes: Iterable[int], proc: Path = Path("/proc")) -> set[str]:
    """Return the names of all threads of those processes that still run, as perf prints them."""
    found = set()
    for process in processes:
        for file in (proc / str(process) / "task").glob("*/comm"):
            with contextlib.suppress(OSError):
                found.add(file.read_text().strip())
    return found


def own_cores(cores: Mapping[str, Sequence[int]], ends: Mapping[str, str]) -> dict[str, list[int]]:
    """Return, for each end, the processors that no other node uses; {} if an end has no such processor.

    `cores`: the processors by node. `ends`: the node of each end, by `source` and `target`; the result has these keys.
    """
    shared = Counter(core for own in cores.values() for core in own)
    found = {side: [core for core in cores[node] if shared[core] == 1] for side, node in ends.items()}
    return found if all(found.values()) else {}


def unwinding(pids: Iterable[int]) -> str:
    """Choose how to find callers (a key of UNWINDING): "fp" if any of these processes is a Go program, else "dwarf"."""
    return "fp" if any(is_go(Path(f"/proc/{pid}/exe")) for pid in pids) else "dwarf"


def is_go(program: Path) -> bool:
    """Return whether a program was built by Go; False if it cannot be read."""
    try:
        with program.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
            return content.find(_GO) >= 0
    except (OSError, ValueError):
        return False


def bound_to_us(argv: Sequence[str]) -> list[str]:
    """Return a command that runs `argv`, and that the kernel kills when this process ends, in whatever way."""
    return ["setpriv", "--pdeathsig", "KILL", "sh", "-c", _ALIVE, str(os.getpid()), *argv]


def fold(data: Path, prefix: Path, own: Mapping[str, Sequence[int]]) -> dict[str, dict[str, int]]:
    """Fold perf's data into the files PREFIX.SIDE.folded, and return for each side how many samples they hold.

    A side is an end of the traffic, `source` or `target`. `own`: for each side, the processors that only it uses
    (`own_cores`). The result has, for each side, `samples`: all its samples, and `softirq`: those of softirq work
    outside the lab's processes, on its own processors.
    """
    sides = [word for side in FILES for word in ("--side", f"{side}={','.join(map(str, own.get(side, ())))}")]
    script = [str(find("perf", PACKAGES)), "script", "-i", str(data), "--no-inline", "-F", _FIELDS]
    folding = [str(find("tunnelmark-flame")), "fold", "--to", str(prefix), *sides]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(script, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.DEVNULL) as perf,
        subprocess.Popen(folding, stdin=pipe, stdout=pipe, stderr=pipe) as flame,
    ):
        try:
            assert perf.stdout is not None and flame.stdin is not None
            _pass_on(perf.stdout.fileno(), flame.stdin.fileno())
            told, complaints = flame.communicate(timeout=_END)
        finally:
            perf.kill()
            flame.kill()
    if flame.returncode != 0:
        raise ValueError(complaints.decode(errors="replace").strip())
    found: dict[str, dict[str, int]] = json.loads(told)
    return found


def _next(source: int, patience: float, what: str) -> bytes:
    """Return the next bytes of a pipe, b"" at its end; TimeoutError with `what` if none come for `patience` seconds."""
    if not select.select((source,), (), (), patience)[0]:
        raise TimeoutError(f"perf wrote no {what} for {patience:g} s")
    return os.read(source, 1 << 16)


def _pass_on(source: int, target: int) -> None:
    """Copy all bytes of a pipe to another one; TimeoutError if nothing moves for `_END` seconds.

    The whole may take longer: a busy machine unwinds some ten thousand stacks in a minute.
    """
    os.set_blocking(target, False)
    with contextlib.suppress(BrokenPipeError):  # the reader has ended, and says why
        while data := _next(source, _END, "further stack"):
            while data:
                if not select.select((), (target,), (), _END)[1]:
                    raise TimeoutError(f"its stacks were not read for {_END:g} s")
                data = data[os.write(target, data) :]


def _reap(process: subprocess.Popen[bytes]) -> float:
    """Wait until a process ends, kill it if that takes over `_END` seconds, and return the CPU seconds that it used."""
    deadline = time.monotonic() + _END
    while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.005)
    process.returncode = os.waitstatus_to_exitcode(ended[1])
    return ended[2].ru_utime + ended[2].ru_stime


COLLECTOR = Collector(
    name="stacks",
    turn=Turn.PERF,
    title="stacks of sender and receiver, kernel and user, as flame graphs",
    metrics=(
        *both("stacks", "samples", "stacks recorded", better="higher"),
        *(
            metric
            for name, said in KINDS_OF_DAEMONS.items()
            for metric in both(name, "%", f"stacks of the daemons in {said}", compare="difference", feels="processor")
        ),
    ),
    watch=Stacks,
)
