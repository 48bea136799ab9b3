"""Builds QEMU's command line from a description of the machine that a guest sees. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tunnelmark.errors import UsageError
from tunnelmark.lab.vm.initramfs import HOST_TAG, SHARE_TAG

PROGRAM = "qemu-system-x86_64"

Accelerator = Literal["kvm", "tcg"]

# x86-64-v2, which the host's compiled Python packages ask for, and nothing above it: emulated AVX is slower than the
# code that does without it. RDRAND, so that the guest's random numbers differ from boot to boot.
_EMULATED_CPU = "Nehalem,+rdrand"


@dataclass(frozen=True, slots=True)
class Hardware:
    """The machine that a guest sees. `memory` is in MiB; up to half of it can hold files.

    `virtual_clock` makes the guest's clock count its own instructions (`instruction_ns` nanoseconds each, a power of
    two) and jump over idle time. What happens in the guest then takes the same time in the guest, however busy the host
    is. It allows only one core, and only software emulation.
    """

    cores: int = 2
    memory: int = 1024
    cpu: str = ""  # QEMU's name of a processor model; empty: what suits the accelerator
    virtual_clock: bool = False
    instruction_ns: int = 1

    def __post_init__(self) -> None:
        if self.cores < 1 or self.memory < 256:
            raise UsageError(
                f"a guest with {self.cores} cores and {self.memory} MiB cannot boot",
                hint="give it one core or more and 256 MiB or more",
            )
        if self.virtual_clock and self.cores != 1:
            raise UsageError(
                "a guest whose clock counts instructions has one core", hint="set cores=1 or virtual_clock=False"
            )
        if self.instruction_ns not in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
            raise UsageError(
                f"an instruction cannot take {self.instruction_ns} ns", hint="a power of two from 1 to 1024"
            )


def command_line(
    hardware: Hardware, accelerator: Accelerator, *, kernel: Path, initramfs: Path, share: Path, console: Path
) -> list[str]:
    """Return QEMU's command, its name first. QEMU's standard input and output are the guest's second serial port.

    The first serial port goes to the file `console`. UsageError for a path with a comma, which QEMU's options cannot
    hold.
    """
    for path in (share, console):
        if "," in str(path):
            raise UsageError(f"QEMU cannot use {path}", hint="choose a folder without a comma in its path")
    return [
        PROGRAM,
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"),
        *("-M", "q35", *_acceleration(hardware, accelerator)),
        *("-smp", str(hardware.cores), "-m", str(hardware.memory)),
        *("-kernel", str(kernel), "-initrd", str(initramfs), "-append", kernel_command_line(hardware)),
        *("-serial", f"file:{console}"),
        *("-chardev", "stdio,id=control,signal=off", "-serial", "chardev:control"),
        *_folder(HOST_TAG, Path("/"), readonly=True),
        *_folder(SHARE_TAG, share, readonly=False),
    ]


def kernel_command_line(hardware: Hardware) -> str:
    """Return the kernel's command line: console on the first serial port, end at a panic, mitigations off."""
    words = ["console=ttyS0", "quiet", "panic=-1", "mitigations=off"]
    if hardware.virtual_clock:
        # The kernel would otherwise find that the counted clock and the emulated timer chip disagree.
        words += ["tsc=reliable", "lpj=4000000"]
    return " ".join(words)


def _acceleration(hardware: Hardware, accelerator: Accelerator) -> Sequence[str]:
    if hardware.virtual_clock:
        shift = hardware.instruction_ns.bit_length() - 1
        counted = ("-accel", "tcg,thread=single", "-icount", f"shift={shift},sleep=off")
        return (*counted, "-cpu", hardware.cpu or _EMULATED_CPU)
    if accelerator == "kvm":
        return ("-accel", "kvm", "-cpu", hardware.cpu or "host")
    return ("-accel", "tcg,thread=multi", "-cpu", hardware.cpu or _EMULATED_CPU)


def _folder(tag: str, path: Path, *, readonly: bool) -> Sequence[str]:
    # Owners and modes pass through as they are; ids of files from several file systems are kept apart.
    options = f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap"
    return ("-virtfs", options + (",readonly=on" if readonly else ""))
