"""Makes BPF programs and maps with the system call bpf(2), without a library or a compiler.

All its functions but `instruction` raise OSError if the kernel refuses, or if bpf(2) is unknown on this architecture.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_NUMBER = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_MAP_CREATE, _MAP_LOOKUP, _PROG_LOAD, _PROG_ATTACH = 0, 1, 5, 8  # enum bpf_cmd, <linux/bpf.h>
_ARRAY = 2  # enum bpf_map_type


def instruction(code: int, destination: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    """Return one instruction of eight bytes (struct bpf_insn)."""
    return struct.pack("<BBhi", code, source << 4 | destination, offset, value)


def load(kind: int, program: bytes) -> int:
    """Load a program of type `kind` (`enum bpf_prog_type`), and return its file descriptor."""
    code = ctypes.create_string_buffer(program)
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    log = ctypes.create_string_buffer(1 << 16)  # a log without room is an error of its own
    attributes = struct.pack(
        "<IIQQIIQ",
        kind,
        len(program) // 8,
        ctypes.addressof(code),
        ctypes.addressof(licence),
        1,
        len(log),
        ctypes.addressof(log),
    )
    return _call(_PROG_LOAD, attributes.ljust(128, b"\0"))


def attach(program: int, target: int, kind: int) -> None:
    """Attach a loaded program to an open control group; `kind` is a value of `enum bpf_attach_type`."""
    _call(_PROG_ATTACH, struct.pack("<IIII", target, program, kind, 0))


def numbers(count: int) -> int:
    """Make a map that holds one array of `count` 64-bit numbers, all 0; return its file descriptor."""
    return _call(_MAP_CREATE, struct.pack("<IIII", _ARRAY, 4, 8 * count, 1).ljust(128, b"\0"))


def read(numbers: int, count: int) -> tuple[int, ...]:
    """Return the `count` numbers that a map holds now; `numbers`: its file descriptor, from the function `numbers`."""
    key, value = ctypes.create_string_buffer(4), ctypes.create_string_buffer(8 * count)
    where = struct.pack("<IIQQQ", numbers, 0, ctypes.addressof(key), ctypes.addressof(value), 0)
    _call(_MAP_LOOKUP, where.ljust(128, b"\0"))
    return struct.unpack(f"={count}Q", value.raw[: 8 * count])


def _call(command: int, attributes: bytes) -> int:
    number = _NUMBER.get(platform.machine())
    if number is None:
        raise OSError(38, f"bpf(2) has no known number on {platform.machine()}")
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), command, ctypes.byref(buffer), ctypes.c_uint(len(attributes)))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"bpf: {os.strerror(error)}")
    return result
