"""Keeps a counted clock from jumping: in a guest that has nothing to do, a thread counts on.

QEMU counts instructions and, when the guest idles, moves the clock to the guest's next timer at once. That is right while
the guest waits for its own timers, and wrong while it waits for the host's files: every timeout in the guest has then passed
before a program is read from the disk. A thread that runs when nothing else wants to (SCHED_IDLE, sched(7)) leaves no
idle time, so that the clock goes on as the processor counts. Everything else is served before it, at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import threading
from pathlib import Path

_LOOP = b"\x90\x90\x90\x90\xeb\xfa"
"""nop, nop, nop, nop, jmp to the first: five instructions, which software emulation runs through about as fast as it takes
the processor that they stand for, so that a guest's idle second takes about a second."""

_SOFTIRQ, _PRIORITY = "ksoftirqd", 1


def keep() -> None:
    """Start the thread; it ends with its process and belongs to the process's own CPU time."""
    threading.Thread(target=_count, name="awake", daemon=True).start()


def forward_first() -> None:
    """Have the kernel forward packets before any program runs, however many there are.

    Where packets are many the kernel leaves them to a thread of its own, which then takes turns of milliseconds with the
    programs. On several cores that rarely shows; on a single one a shaper would let out its burst once a turn, 6 Mbit/s
    in place of 100. With the least real-time priority the thread is served as interrupts are.
    """
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            if (folder / "comm").read_text().startswith(_SOFTIRQ):
                os.sched_setscheduler(int(folder.name), os.SCHED_FIFO, os.sched_param(_PRIORITY))


def _count() -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_LOOP)
    # Called through ctypes, which lets go of Python's lock; it never returns.
    ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
