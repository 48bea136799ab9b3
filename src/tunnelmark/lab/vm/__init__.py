"""A virtual machine with a stock Debian kernel and the host's files, for what only a kernel has.

netem, WireGuard in the kernel, another kernel than the host's: a guest of QEMU has them on every x86-64 machine, by
software emulation where there is no KVM. Nothing is installed on the host. `guest` boots and drives it, `kernel`
fetches the kernel, `modules`, `initramfs` and `qemu` are pure: what to load, the first file system, the command line.
"""

from tunnelmark.lab.vm.guest import Guest
from tunnelmark.lab.vm.qemu import Hardware

__all__ = ["Guest", "Hardware"]
