"""Counts the packets that leave an interface by their size, in the kernel: nothing is captured or copied to us.

A packet socket carries a BPF filter that notes each outgoing packet in a map and accepts none. On an interface without
segmentation offload, as the underlay's are, what passes there are wire packets; on one with it (a TUN device of a VPN that
takes super-packets), the filter notes how many segments each stands for.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from tunnelmark.lab import bpf, inside

_SIZES = 2048  # sizes told apart; all from the last on are one
_BYTES, _SEGMENTS = _SIZES, _SIZES + 1  # places behind the sizes
_COUNT = _SIZES + 2
_ETH_P_ALL = 3
_SO_ATTACH_BPF = 50  # <asm-generic/socket.h>
_PROG_TYPE_SOCKET_FILTER = 1
_PACKET_OUTGOING = 4  # <linux/if_packet.h>
_LEN, _PKT_TYPE, _GSO_SEGS = 0, 4, 164  # offsets in struct __sk_buff, <linux/bpf.h>
_PSEUDO_MAP_VALUE = 2


@dataclass(frozen=True, slots=True)
class Counted:
    """Packets that left: how many of each size in bytes (`sizes`; 2047: that or more), their bytes, and `segments`,
    the packets that super-packets among them will become beyond one each. Ethernet headers are part of the size.
    """

    sizes: dict[int, int]
    bytes: int
    segments: int

    @property
    def packets(self) -> int:
        """Packets, each super-packet counted as one."""
        return sum(self.sizes.values())


def program(numbers: int) -> bytes:
    """The filter as bytes; `numbers` is its map's file descriptor.

    In C: if (skb->pkt_type == PACKET_OUTGOING) {
              sizes[min(skb->len, 2047)]++; bytes += skb->len; if (skb->gso_segs > 1) segments += skb->gso_segs - 1;
          }
          return 0;
    """
    i = bpf.instruction
    add = 0xDB  # lock *(u64 *)(dst + offset) += src
    body = [
        i(0x61, 2, 6, _LEN),  # r2 = ctx->len
        i(0x61, 3, 6, _GSO_SEGS),
        i(0x18, 7, _PSEUDO_MAP_VALUE, 0, numbers),  # r7 = the array (two instructions wide)
        i(0),
        i(0xBF, 4, 2),  # r4 = r2
        i(0xB5, 4, 0, 1, _SIZES - 1),  # if r4 <= 2047, skip
        i(0xB7, 4, 0, 0, _SIZES - 1),
        i(0x67, 4, 0, 0, 3),  # r4 <<= 3
        i(0xBF, 5, 7),
        i(0x0F, 5, 4),  # r5 = r7 + r4
        i(0xB7, 0, 0, 0, 1),
        i(add, 5, 0, 0),
        i(add, 7, 2, 8 * _BYTES),
        i(0xB5, 3, 0, 2, 1),  # if r3 <= 1, skip both
        i(0x07, 3, 0, 0, -1),
        i(add, 7, 3, 8 * _SEGMENTS),
    ]
    return b"".join(
        [
            i(0xBF, 6, 1),  # r6 = ctx
            i(0x61, 1, 6, _PKT_TYPE),
            i(0x55, 1, 0, len(body), _PACKET_OUTGOING),  # if r1 != PACKET_OUTGOING, to the end
            *body,
            i(0xB7, 0, 0, 0, 0),
            i(0x95),
        ]
    )


class Tap:
    """A count on one interface of a node (by the PID of its agent), from now until `close`. OSError where BPF is refused.

    Each packet that leaves costs the node about a tenth of a microsecond more while the count runs, because the kernel
    makes a copy of its head for whoever listens; `pause` and `resume` are for those who need a part of them only.
    """

    def __init__(self, pid: int, interface: str) -> None:
        self._pid = pid
        self._interface = interface
        self._map = bpf.numbers(_COUNT)
        self._socket: socket.socket | None = None
        try:
            self._filter = bpf.load(_PROG_TYPE_SOCKET_FILTER, program(self._map))
        except BaseException:
            os.close(self._map)
            raise
        try:
            self.resume()
        except BaseException:
            self.close()
            raise

    @property
    def running(self) -> bool:
        """Whether it counts now."""
        return self._socket is not None

    def resume(self) -> None:
        """Count again."""
        if self._socket is None:
            self._socket = inside.network_of(self._pid, lambda: _listen(self._interface, self._filter))

    def pause(self) -> None:
        """Count no longer, for now; what was counted is kept. The kernel may take some 10 ms."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def read(self) -> Counted:
        """What has been counted up to now."""
        numbers = bpf.read(self._map, _COUNT)
        sizes = {size: count for size, count in enumerate(numbers[:_SIZES]) if count}
        return Counted(sizes, numbers[_BYTES], numbers[_SEGMENTS])

    def close(self) -> None:
        """Count no longer, and forget."""
        self.pause()
        os.close(self._filter)
        os.close(self._map)


def _listen(interface: str, filter_: int) -> socket.socket:
    """A packet socket with the filter on an interface."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # protocol 0: it hears nothing before its bind
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_BPF, filter_)
        sock.bind((interface, _ETH_P_ALL))
    except BaseException:
        sock.close()
        raise
    return sock
