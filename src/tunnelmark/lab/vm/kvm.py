"""Finds out by a quick trial whether KVM really runs guests here: that /dev/kvm exists proves nothing inside a guest.

Where a hypervisor emulates KVM for its guest, each exit of the inner guest may cost so much that a boot sector takes
twenty times as long as in software emulation, and a kernel gets nowhere. So KVM must not take much longer (`_SLOWER`).
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path

from tunnelmark.host.programs import find
from tunnelmark.lab.vm.qemu import PROGRAM, Accelerator

PACKAGES = ("qemu-system-x86",)
_PATIENCE = 10.0  # seconds; software emulation needs 0.1
_SLOWER = 4.0
"""How many times as long as software emulation KVM may take. Where KVM works, starting QEMU is most of both times; on a
machine whose hypervisor emulates KVM, it took 2.3 s against 0.1 s."""

_PORT, _VALUE = 0xF4, 0x2A
# mov dx, _PORT; mov al, _VALUE; out dx, al; hlt -- and the mark of a boot sector at its end
_SECTOR = bytes([0xBA, _PORT, 0, 0xB0, _VALUE, 0xEE, 0xF4]).ljust(510, b"\0") + b"\x55\xaa"
_EXIT = _VALUE << 1 | 1  # what isa-debug-exit makes of it


async def choose() -> Accelerator:
    """Return `kvm` if it works, else `tcg`. Raises MissingPart if /dev/kvm can be used but QEMU is not installed."""
    return "kvm" if os.access("/dev/kvm", os.R_OK | os.W_OK) and await works() else "tcg"


async def works() -> bool:
    """Return whether KVM runs a boot sector to its end, in at most `_SLOWER` times the time of software emulation.

    If software emulation fails, the limit is 10 seconds (`_PATIENCE`). Raises MissingPart if QEMU is not installed.
    """
    emulated = await sector_time("tcg")
    most = _PATIENCE if emulated is None else _SLOWER * emulated
    return await sector_time("kvm", most) is not None


async def sector_time(accelerator: Accelerator, most: float = _PATIENCE) -> float | None:
    """Return the seconds until a boot sector has run to its end; None if it fails, or takes more than `most` s."""
    program = find(PROGRAM, PACKAGES)
    with tempfile.TemporaryDirectory(prefix="tunnelmark-vm-") as folder:
        disk = Path(folder) / "disk"
        disk.write_bytes(_SECTOR)
        begun = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            program,
            *("-accel", accelerator, "-nodefaults", "-no-user-config", "-display", "none", "-m", "16"),
            *("-drive", f"if=floppy,format=raw,readonly=on,file={disk}", "-boot", "a"),
            *("-device", f"isa-debug-exit,iobase={_PORT},iosize=1"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            ended = await asyncio.wait_for(process.wait(), most)
            return time.monotonic() - begun if ended == _EXIT else None
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
