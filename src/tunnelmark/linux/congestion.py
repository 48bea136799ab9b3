"""Sets the TCP congestion control of every socket of a lab, including the VPNs' own sockets.

A network namespace may choose only an algorithm that the host allows: on machines whose default is BBR the sysctl
refuses `cubic` inside a namespace, and the host's own settings are not ours to change. There a BPF program (type
sock_ops) on the lab's control group sets the algorithm with bpf_setsockopt(TCP_CONGESTION) on each socket that listens,
that was accepted, or that has connected. The program ends with its group.

The program leaves a socket alone that begins to connect. An algorithm that is set at that moment is initialised at
once, when the connection has neither sequence numbers nor a clock, and is not initialised again when the connection is
established (`tcp_init_transfer`). For CUBIC's HyStart, the first round would then begin at time 0. In every other 36
minutes of the machine's uptime, most connections would leave slow start much too early: over 76 ms, 9 of 12 reached 4
Mbit/s in their first second in place of 180 (Linux 6.18).
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from tunnelmark.linux.bpf import attach as join
from tunnelmark.linux.bpf import instruction, load

FREE_PORTS = range(5248, 5280)
"""TCP ports whose connections keep the algorithm that their program sets: for a workload that compares algorithms."""

CUBIC = "cubic"  # RFC 9438, Linux's own default and that of all five seeds

_PROG_TYPE_SOCK_OPS, _CGROUP_SOCK_OPS = 13, 3  # enum bpf_prog_type, enum bpf_attach_type, <linux/bpf.h>
_FUNC_SETSOCKOPT = 49
_ACTIVE_ESTABLISHED_CB, _PASSIVE_ESTABLISHED_CB, _LISTEN_CB = 4, 5, 11
_REMOTE_PORT, _LOCAL_PORT = 64, 68  # bytes into struct bpf_sock_ops; the first is in network order, the second is not
_MASK = 0xFFFF & -len(FREE_PORTS)
_IPPROTO_TCP, _TCP_CONGESTION = 6, 13


def program(algorithm: str) -> bytes:
    """Return the BPF program as bytes. `algorithm`: its name, of at most 8 characters; else struct.error.

    The program leaves a connection alone whose local or remote port is one of the 32 `FREE_PORTS`; `mask` clears the
    last five bits of a port, so that the result is the first of them.

    In C: if ((local_port & mask) == FREE_PORTS[0] || (ntohl(remote_port) & mask) == FREE_PORTS[0])
              return 1;
          if (op == ACTIVE_ESTABLISHED || op == PASSIVE_ESTABLISHED || op == LISTEN)
              bpf_setsockopt(ctx, IPPROTO_TCP, TCP_CONGESTION, name, length);
          return 1;
    """
    name = algorithm.encode()
    low, high = struct.unpack("<ii", name.ljust(8, b"\0"))
    load_context = [
        instruction(0xBF, 6, 1),  # r6 = ctx
        instruction(0x61, 3, 1, _LOCAL_PORT),  # r3 = ctx->local_port
        instruction(0x57, 3, 0, 0, _MASK),  # r3 &= mask
        instruction(0x15, 3, 0, 8, FREE_PORTS.start),  # to `return`
        instruction(0x61, 3, 1, _REMOTE_PORT),
        instruction(0xDC, 3, 0, 0, 32),  # r3 = ntohl(r3)
        instruction(0x57, 3, 0, 0, _MASK),
        instruction(0x15, 3, 0, 4, FREE_PORTS.start),
        instruction(0x61, 2, 1, 0),  # r2 = ctx->op
        instruction(0x15, 2, 0, 4, _ACTIVE_ESTABLISHED_CB),  # to `set`
        instruction(0x15, 2, 0, 3, _PASSIVE_ESTABLISHED_CB),
        instruction(0x15, 2, 0, 2, _LISTEN_CB),
        instruction(0xB7, 0, 0, 0, 1),  # return: r0 = 1
        instruction(0x95),  # exit
    ]
    set_option = [
        instruction(0x62, 10, 0, -8, low),  # the name on the stack
        instruction(0x62, 10, 0, -4, high),
        instruction(0xBF, 1, 6),  # r1 = ctx
        instruction(0xB7, 2, 0, 0, _IPPROTO_TCP),
        instruction(0xB7, 3, 0, 0, _TCP_CONGESTION),
        instruction(0xBF, 4, 10),  # r4 = name
        instruction(0x07, 4, 0, 0, -8),
        instruction(0xB7, 5, 0, 0, len(name)),
        instruction(0x85, 0, 0, 0, _FUNC_SETSOCKOPT),
        instruction(0xB7, 0, 0, 0, 1),
        instruction(0x95),
    ]
    return b"".join(load_context + set_option)


def attach(algorithm: str, group: Path) -> None:
    """Attach the program to a v2 control group and all groups below it; OSError if the kernel refuses it."""
    loaded = load(_PROG_TYPE_SOCK_OPS, program(algorithm))
    group_fd = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        join(loaded, group_fd, _CGROUP_SOCK_OPS)
    finally:
        os.close(group_fd)
        os.close(loaded)
