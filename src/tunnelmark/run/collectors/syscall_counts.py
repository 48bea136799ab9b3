"""Counts the system calls of the VPN's daemons, by `perf stat` on the kernel's tracepoint `raw_syscalls:sys_enter`.

The tracepoint costs each system call about a tenth of a microsecond, so this collector is not one of the light ones. perf
finds the tracepoint in tracefs, which is mounted in perf's own mount namespace: the host's mounts are not changed.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
from dataclasses import dataclass

from tunnelmark.errors import LabError
from tunnelmark.host.programs import find
from tunnelmark.model.metrics import Sample
from tunnelmark.run.collectors import _counts
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Stopwatch, Turn, both
from tunnelmark.run.collectors.stacks import bound_to_us

METRICS = (
    *both("syscalls", "1/s", "system calls of the daemons"),
    *both("syscalls_per_packet", "", "system calls of the daemons per wire packet"),
)
EVENT = "raw_syscalls:sys_enter"
NO_DAEMONS = "no daemon runs on the node"
DONE = "done_"  # prefix of keys of `Collected.sums`: the system calls of an end
_HINT = "it needs tracefs (CONFIG_FTRACE_SYSCALLS) and the right to trace"
_TRACEFS = 'mount -t tracefs nodev /sys/kernel/tracing && exec "$@"'
_PATIENCE = 10.0  # seconds for perf to open its counters


@dataclass(slots=True)
class _Counter:
    """A `perf stat` on the daemons of one end, with the pipes for the commands to begin and to stop."""

    process: subprocess.Popen[str]
    control: int
    answers: int

    @classmethod
    def start(cls, processes: tuple[int, ...]) -> _Counter:
        """Start perf on these processes; it does not count yet."""
        theirs, control = os.pipe()
        answers, said = os.pipe()
        perf = [str(find("perf", ("linux-perf",))), "stat", "-x", ",", "-e", EVENT, "-D", "-1"]
        perf += ["--control", f"fd:{theirs},{said}", "-p", ",".join(map(str, processes))]
        process = subprocess.Popen(
            bound_to_us(["unshare", "-m", "--propagation", "private", "sh", "-c", _TRACEFS, "perf", *perf]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs, said),
            start_new_session=True,  # Ctrl-C is for the command, which ends it
            text=True,
        )
        os.close(theirs)
        os.close(said)
        return cls(process, control, answers)

    def tell(self, word: str) -> bool:
        """Send perf a command (`enable`, `disable`), and return whether it has carried it out."""
        try:
            os.write(self.control, f"{word}\n".encode())
        except BrokenPipeError:
            return False
        readable, _, _ = select.select((self.answers,), (), (), _PATIENCE)
        return bool(readable and os.read(self.answers, 16).startswith(b"ack"))

    def stop(self) -> tuple[str, float]:
        """End perf; return what it printed, and the CPU seconds that it used."""
        os.kill(self.process.pid, signal.SIGINT)  # it is ours until it is waited for, even if it has ended
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            printed = stream.read()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        os.close(self.control)
        os.close(self.answers)
        return printed, usage.ru_utime + usage.ru_stime


class _Syscalls:
    def __init__(self, context: CollectorContext) -> None:
        self._context = context
        self._daemons = context.daemons  # now, while nothing else runs on the nodes
        self._counters: dict[str, _Counter] = {}

    async def begin(self) -> None:
        for end, node in self._context.ends.items():
            if self._daemons[node]:
                self._counters[end] = _Counter.start(self._daemons[node])
        told = [await asyncio.to_thread(counter.tell, "enable") for counter in self._counters.values()]
        if not all(told):
            said = " ".join([(await asyncio.to_thread(counter.stop))[0] for counter in self._counters.values()])
            raise LabError(f"system calls cannot be counted: {' '.join(said.split())[-300:]}", hint=_HINT)
        self._since = Stopwatch()
        self._first = {node: _counts.traffic(self._context, node) for node in self._context.ends.values()}

    async def sample(self) -> None:
        """Do nothing: perf counts by itself."""

    async def end(self) -> Collected:
        took = self._since()
        passed = {
            end: _counts.traffic(self._context, node).since(self._first[node])
            for end, node in self._context.ends.items()
        }
        sums = _counts.wire_packets(self._context.card, passed)
        for counter in self._counters.values():
            await asyncio.to_thread(counter.tell, "disable")
        samples, notes, cpu = list[Sample](), dict[str, str](), 0.0
        for end in self._context.ends:
            if end not in self._counters:
                notes |= dict.fromkeys((f"syscalls_{end}", f"syscalls_per_packet_{end}"), NO_DAEMONS)
                continue
            printed, used = await asyncio.to_thread(self._counters[end].stop)
            cpu += used
            count = counted(printed)
            if count is None:
                why = f"perf did not count: {' '.join(printed.split())[-300:]}"
                notes |= dict.fromkeys((f"syscalls_{end}", f"syscalls_per_packet_{end}"), why)
                continue
            samples.append(Sample(f"syscalls_{end}", count / took))
            sums[f"{DONE}{end}"] = count
        return Collected(tuple(samples), notes, cpu, sums=sums)


def counted(printed: str) -> int | None:
    """Return the number of system calls from the output of `perf stat -x ,`; None if perf could not count."""
    for line in printed.splitlines():
        words = line.split(",")
        if len(words) > 2 and words[2].startswith(EVENT):
            # "<not counted>" means that the processes did not run at all.
            return int(words[0]) if words[0].isdigit() else 0 if words[0] == "<not counted>" else None
    return None


def conclude(seen: Collected) -> Collected:
    """Return the system calls per wire packet of each end."""
    return _counts.for_each_packet(seen, DONE, "syscalls_per_packet")


COLLECTOR = Collector("syscalls", "system calls of the daemons", METRICS, _Syscalls, turn=Turn.PERF, conclude=conclude)
