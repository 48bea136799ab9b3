"""The program that chooses the congestion control acts on sockets that have their sequence numbers and their clock."""

from __future__ import annotations

import struct

from tunnelmark.lab.congestion import CUBIC, program

CONNECT, ACTIVE_ESTABLISHED, PASSIVE_ESTABLISHED, LISTEN = 3, 4, 5, 11  # enum of BPF_SOCK_OPS_*, <linux/bpf.h>
JUMP_IF_EQUAL, STORE_WORD = 0x15, 0x62


def instructions() -> list[tuple[int, int, int, int]]:
    return [struct.unpack("<BBhi", part) for part in struct.iter_unpack("8s", program(CUBIC)) for part in part]


def test_it_acts_once_a_connection_stands_and_not_before():
    """Set while a socket connects, CUBIC would be initialised without a clock, and leave slow start at 16 packets."""
    moments = {value for code, _, _, value in instructions() if code == JUMP_IF_EQUAL}
    assert moments == {ACTIVE_ESTABLISHED, PASSIVE_ESTABLISHED, LISTEN}
    assert CONNECT not in moments


def test_it_names_the_algorithm():
    stored = b"".join(struct.pack("<i", value) for code, _, _, value in instructions() if code == STORE_WORD)
    assert stored.rstrip(b"\0").decode() == CUBIC
