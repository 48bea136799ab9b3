"""Sets the TCP congestion control of every socket of a lab, the VPNs' own included.

A network namespace may choose only what the host allows: on machines whose default is BBR the
sysctl refuses `cubic` inside a namespace, and the host's own settings are not ours to change.
There a BPF program (type sock_ops) on the lab's control group sets it on each socket as it listens, accepts or
has connected, with bpf_setsockopt(TCP_CONGESTION). The program goes when its group goes.

Not as it connects: the kernel initialises an algorithm that a program sets there at once, and not again when the
connection stands (`tcp_init_transfer`). At that moment a connection has neither sequence numbers nor a clock, so for
CUBIC's HyStart the first round began at 0. While the machine's uptime in microseconds was in the upper half of 32 bits
(every other 36 minutes), 9 of 12 connections left slow start at 16 packets, with 4 Mbit/s in their first second over
76 ms instead of 180; 0 of 12 did without the program, and 0 of 12 since it acts later (Linux 6.18).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from pathlib import Path

CUBIC = "cubic"  # RFC 9438, Linux's own default and that of all five seeds

_SYS_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_PROG_LOAD, _PROG_ATTACH = 5, 8  # enum bpf_cmd, <linux/bpf.h>
_PROG_TYPE_SOCK_OPS, _CGROUP_SOCK_OPS = 13, 3
_FUNC_SETSOCKOPT = 49
_ACTIVE_ESTABLISHED_CB, _PASSIVE_ESTABLISHED_CB, _LISTEN_CB = 4, 5, 11
_IPPROTO_TCP, _TCP_CONGESTION = 6, 13


def _instruction(code: int, destination: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, source << 4 | destination, offset, value)


def program(algorithm: str) -> bytes:
    """The BPF program as bytes; `algorithm` has at most 8 characters.

    In C: if (op == ACTIVE_ESTABLISHED || op == PASSIVE_ESTABLISHED || op == LISTEN)
              bpf_setsockopt(ctx, IPPROTO_TCP, TCP_CONGESTION, name, length);
          return 1;
    """
    name = algorithm.encode()
    low, high = struct.unpack("<ii", name.ljust(8, b"\0"))
    load_context = [
        _instruction(0xBF, 6, 1),  # r6 = ctx
        _instruction(0x61, 2, 1, 0),  # r2 = ctx->op
        _instruction(0x15, 2, 0, 4, _ACTIVE_ESTABLISHED_CB),  # to `set`
        _instruction(0x15, 2, 0, 3, _PASSIVE_ESTABLISHED_CB),
        _instruction(0x15, 2, 0, 2, _LISTEN_CB),
        _instruction(0xB7, 0, 0, 0, 1),  # r0 = 1
        _instruction(0x95),  # exit
    ]
    set_option = [
        _instruction(0x62, 10, 0, -8, low),  # the name on the stack
        _instruction(0x62, 10, 0, -4, high),
        _instruction(0xBF, 1, 6),  # r1 = ctx
        _instruction(0xB7, 2, 0, 0, _IPPROTO_TCP),
        _instruction(0xB7, 3, 0, 0, _TCP_CONGESTION),
        _instruction(0xBF, 4, 10),  # r4 = name
        _instruction(0x07, 4, 0, 0, -8),
        _instruction(0xB7, 5, 0, 0, len(name)),
        _instruction(0x85, 0, 0, 0, _FUNC_SETSOCKOPT),
        _instruction(0xB7, 0, 0, 0, 1),
        _instruction(0x95),
    ]
    return b"".join(load_context + set_option)


def attach(algorithm: str, group: Path) -> None:
    """Attach the program to a v2 control group and all groups below it; OSError as bpf(2)."""
    code = ctypes.create_string_buffer(program(algorithm))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    log = ctypes.create_string_buffer(4096)
    load = struct.pack(
        "<IIQQIIQ",
        _PROG_TYPE_SOCK_OPS,
        (len(code) - 1) // 8,
        ctypes.addressof(code),
        ctypes.addressof(licence),
        1,
        len(log),
        ctypes.addressof(log),
    )
    program_fd = _bpf(_PROG_LOAD, load.ljust(128, b"\0"))
    group_fd = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _bpf(_PROG_ATTACH, struct.pack("<IIII", group_fd, program_fd, _CGROUP_SOCK_OPS, 0))
    finally:
        os.close(group_fd)
        os.close(program_fd)


def _bpf(command: int, attributes: bytes) -> int:
    number = _SYS_BPF.get(platform.machine())
    if number is None:
        raise OSError(38, f"bpf(2) has no known number on {platform.machine()}")
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), command, ctypes.byref(buffer), ctypes.c_uint(len(attributes)))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"bpf: {os.strerror(error)}")
    return result
