"""The program that chooses the congestion control acts on sockets that have their sequence numbers and their clock."""

from __future__ import annotations

import struct

from tunnelmark.linux.congestion import CUBIC, FREE_PORTS, program

CONNECT, ACTIVE_ESTABLISHED, PASSIVE_ESTABLISHED, LISTEN = 3, 4, 5, 11  # enum of BPF_SOCK_OPS_*, <linux/bpf.h>
JUMP_IF_EQUAL, STORE_WORD = 0x15, 0x62


def instructions() -> list[tuple[int, int, int, int]]:
    return [struct.unpack("<BBhi", part) for part in struct.iter_unpack("8s", program(CUBIC)) for part in part]


def test_it_acts_once_a_connection_stands_and_not_before():
    """Set while a socket connects, CUBIC would be initialised without a clock, and leave slow start at 16 packets."""
    moments = {value for code, _, _, value in instructions() if code == JUMP_IF_EQUAL} - {FREE_PORTS.start}
    assert moments == {ACTIVE_ESTABLISHED, PASSIVE_ESTABLISHED, LISTEN}
    assert CONNECT not in moments


def test_it_leaves_the_free_ports_alone_at_either_end():
    free = [place for place, (code, _, _, value) in enumerate(instructions()) if value == FREE_PORTS.start]
    assert len(free) == 2
    for place in free:
        _, _, offset, _ = instructions()[place]
        assert [code for code, *_ in instructions()[place + 1 + offset :][:2]] == [0xB7, 0x95], "a jump to return 1"
    assert FREE_PORTS.start % len(FREE_PORTS) == 0, "a mask cannot tell them from others"


def test_it_names_the_algorithm():
    stored = b"".join(struct.pack("<i", value) for code, _, _, value in instructions() if code == STORE_WORD)
    assert stored.rstrip(b"\0").decode() == CUBIC
