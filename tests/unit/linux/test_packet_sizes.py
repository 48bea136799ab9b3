"""The filter that counts packets: its jumps stay inside, it accepts nothing; and who owns which core's ksoftirqd."""

from __future__ import annotations

import struct

from tunnelmark.host.softirq import owners
from tunnelmark.linux.packet_sizes import SizeCounts, program

JUMPS = {0x05, 0x15, 0x55, 0xB5}
EXIT = 0x95


def instructions() -> list[tuple[int, int, int, int]]:
    return [struct.unpack("<BBhi", part) for part in struct.iter_unpack("8s", program(7)) for part in part]


def test_every_jump_lands_on_an_instruction_ahead():
    found = instructions()
    for place, (code, _, offset, _) in enumerate(found):
        if code in JUMPS:
            assert offset > 0
            assert place + 1 + offset < len(found)
            assert found[place + offset][0] != 0x18, "it would land in the middle of a wide instruction"


def test_it_accepts_no_packet():
    *_, result, end = instructions()
    assert result[0] == 0xB7
    assert result[3] == 0  # r0 = 0 bytes of the packet
    assert end[0] == EXIT
    assert [code for code, *_ in instructions()].count(EXIT) == 1


def test_it_writes_into_the_map_it_was_given():
    assert [value for code, registers, _, value in instructions() if code == 0x18 and registers >> 4 == 2] == [7]


def test_packets_are_the_sum_over_sizes():
    assert SizeCounts({60: 3, 1514: 4}, 6236, 0, 0).packets == 7


def test_a_core_of_several_nodes_is_nobodys():
    assert owners({"a": [0], "b": [1], "middle": []}) == {0: "a", 1: "b"}
    assert owners({"a": [0], "b": [1], "c": [0]}) == {1: "b"}
    assert owners({"a": [0, 1], "b": [2, 3]}) == {0: "a", 1: "a", 2: "b", 3: "b"}
