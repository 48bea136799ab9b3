"""Keeps the clock of a guest with counted time from jumping: a thread carries out instructions while the guest idles.

QEMU counts instructions and, when the guest idles, moves the clock to the guest's next timer at once. That is right
while the guest waits for its own timers, and wrong while it waits for the host's files: every timeout in the guest has
then passed before a program is read from the disk. So a thread runs a loop when nothing else wants to run (SCHED_IDLE,
sched(7)). The guest is then never idle, and its clock follows the instructions of the loop. All other work takes the
core from the thread at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import struct
import threading
import time
from pathlib import Path

from tunnelmark.host.keep_awake import STANDING, Spent

_NOPS = 18
_LOOP = b"\x48\xff\x07" + _NOPS * b"\x90" + bytes((0xEB, 256 - (3 + _NOPS + 2)))
"""The loop: inc qword [rdi], nops, and a jump to the first. The count says how many instructions the loop itself ran.

Software emulation runs them about as fast as the processor that they represent, so a guest's idle second takes about a
second."""

_INSTRUCTIONS = 2 + _NOPS

_SOFTIRQ, _PRIORITY = "ksoftirqd", 1


class ClockLoop:
    """The thread that runs a loop on the guest's only core and counts its own instructions there.

    The kernel also bills the thread for interrupts and softirq work that interrupt the loop. `spent` returns two times:
    the loop's own, and that of the interrupts and softirq work.
    """

    groups: tuple[Path, ...] = ()  # none of its own: it is in its process's control group

    def __init__(self, instruction_ns: int) -> None:
        """Start the thread; it ends with its process, and its CPU time is part of the process's.

        `instruction_ns`: the nanoseconds that the guest's clock counts for one instruction.
        """
        self._each = _INSTRUCTIONS * instruction_ns / 1e9
        self._count = mmap.mmap(-1, mmap.PAGESIZE)
        thread = threading.Thread(target=_count, args=(self._count,), name="awake", daemon=True)
        thread.start()
        assert thread.ident is not None
        self._clock = time.pthread_getcpuclockid(thread.ident)
        STANDING.append(self)

    def spent(self) -> Spent:
        """Return, for core 0, the CPU seconds that the loop used itself, and those of other work billed to the loop."""
        own = struct.unpack_from("@Q", self._count)[0] * self._each
        return {0: (own, self.in_process() - own)}

    def in_process(self) -> float:
        """Return the CPU seconds that the kernel has billed the thread for."""
        return time.clock_gettime(self._clock)


def forward_first() -> None:
    """Give ksoftirqd the least real-time priority, so that the kernel forwards packets before any program runs.

    If there are many packets, the kernel leaves them to this thread. Without the priority, the thread takes turns of
    milliseconds with the programs. On several cores that rarely shows; on a single one a shaper would let out one burst
    in each turn, 6 Mbit/s in place of 100.
    """
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            if (folder / "comm").read_text().startswith(_SOFTIRQ):
                os.sched_setscheduler(int(folder.name), os.SCHED_FIFO, os.sched_param(_PRIORITY))


def _count(count: mmap.mmap) -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_LOOP)
    # Called through ctypes, which lets go of Python's lock; it never returns.
    loop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    loop(ctypes.addressof(ctypes.c_char.from_buffer(count)))
