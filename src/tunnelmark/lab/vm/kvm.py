"""Finds out by a quick trial whether KVM really runs guests here: /dev/kvm alone proves nothing inside a guest."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from tunnelmark.host.programs import find
from tunnelmark.lab.vm.qemu import PROGRAM, Accelerator

PACKAGES = ("qemu-system-x86",)
_PATIENCE = 2.0  # seconds; software emulation needs 0.1

_PORT, _VALUE = 0xF4, 0x2A
# mov dx, _PORT; mov al, _VALUE; out dx, al; hlt -- and the mark of a boot sector at its end
_SECTOR = bytes([0xBA, _PORT, 0, 0xB0, _VALUE, 0xEE, 0xF4]).ljust(510, b"\0") + b"\x55\xaa"
_EXIT = _VALUE << 1 | 1  # what isa-debug-exit makes of it


async def choose() -> Accelerator:
    """`kvm` if it works, else `tcg`. Raises MissingPart without QEMU."""
    return "kvm" if os.access("/dev/kvm", os.R_OK | os.W_OK) and await works("kvm") else "tcg"


async def works(accelerator: Accelerator) -> bool:
    """Whether a boot sector runs to its end; some kernels have the device and start guests that never get anywhere."""
    program = find(PROGRAM, PACKAGES)
    with tempfile.TemporaryDirectory(prefix="tunnelmark-vm-") as folder:
        disk = Path(folder) / "disk"
        disk.write_bytes(_SECTOR)
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
            return await asyncio.wait_for(process.wait(), _PATIENCE) == _EXIT
        except TimeoutError:
            return False
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
