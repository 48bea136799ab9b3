"""A virtual machine with a stock Debian kernel and the host's files, for tests that need another kernel than the
host's.

It has netem and the kernel's WireGuard, on every x86-64 machine: QEMU emulates the processor in software where KVM is
missing. Nothing is installed on the host. `guest` boots and drives it; `kernel` fetches the kernel; `modules`,
`initramfs` and `qemu` are pure: which modules to load, the first file system, the command line.
"""

from tunnelmark.lab.vm.guest import Guest
from tunnelmark.lab.vm.qemu import Hardware

__all__ = ["Guest", "Hardware"]
