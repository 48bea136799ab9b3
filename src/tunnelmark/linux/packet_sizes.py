"""Counts the packets that leave an interface by their size, in the kernel: no packet is captured or copied to this
process.

A packet socket has a BPF filter that counts each outgoing packet in a map and accepts none. A super-packet, which an
interface with segmentation offload takes, is counted as the packets that it will become, with the headers that each of
them repeats.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from tunnelmark.linux import bpf, netns

_SIZES = 2048  # sizes that are counted separately; the last one holds all larger sizes, too
_BYTES, _SEGMENTS, _HEADERS = _SIZES, _SIZES + 1, _SIZES + 2  # places behind the sizes
_COUNT = _SIZES + 3
_ETH_P_ALL = 3
_ETHERNET = 14  # bytes of its header
_SO_ATTACH_BPF = 50  # <asm-generic/socket.h>
_PROG_TYPE_SOCKET_FILTER = 1
_PACKET_OUTGOING = 4  # <linux/if_packet.h>
_LEN, _PKT_TYPE, _GSO_SEGS, _GSO_SIZE = 0, 4, 164, 176  # offsets in struct __sk_buff, <linux/bpf.h>
_NETWORK = -0x100000  # SKF_NET_OFF of <linux/filter.h>: from here on, bytes of the network header
_PSEUDO_MAP_VALUE = 2
_UDP = 17
_ADD = 0xDB  # lock *(u64 *)(destination + offset) += source


@dataclass(frozen=True, slots=True)
class SizeCounts:
    """The packets that left an interface, by size, with Ethernet headers.

    `sizes`: the number of packets by size in bytes; 2047 counts all sizes from there on. `bytes`: bytes that the
    interface took. `segments`: how many packets super-packets became, without the first one of each. `headers`: bytes
    of the IP and TCP or UDP headers of these packets; they are not part of `bytes`.
    """

    sizes: dict[int, int]
    bytes: int
    segments: int
    headers: int

    @property
    def packets(self) -> int:
        """The number of packets on the wire."""
        return sum(self.sizes.values())

    @property
    def ip_bytes(self) -> int:
        """The bytes of the IP packets that the interface took: a super-packet is one, with one set of headers."""
        return self.bytes - _ETHERNET * (self.packets - self.segments)


def program(numbers: int) -> bytes:
    """Return the filter as bytes; `numbers` is its map's file descriptor.

    In C: if (skb->pkt_type != PACKET_OUTGOING) return 0;
          bytes += skb->len; last = skb->len;
          if (skb->gso_segs > 1) {
              more = skb->gso_segs - 1; heads = length of the IP header + (proto == UDP ? 8 : length of the TCP header);
              segments += more; headers += more * heads;
              sizes[min(14 + heads + skb->gso_size, 2047)] += more; last -= more * skb->gso_size;
          }
          sizes[min(last, 2047)]++; return 0;
    """
    i = bpf.instruction
    version_4 = [i(0x57, 9, 0, 0, 15), i(0x67, 9, 0, 0, 2), i(0x30, 0, 0, 0, _NETWORK + 9)]
    version_6 = [i(0xB7, 9, 0, 0, 40), i(0x30, 0, 0, 0, _NETWORK + 6)]
    tcp = [i(0x50, 0, 9, 0, _NETWORK + 12), i(0x77, 0, 0, 0, 4), i(0x67, 0, 0, 0, 2), i(0x0F, 9, 0)]
    udp = [i(0x07, 9, 0, 0, 8)]
    split = [
        i(0x30, 0, 0, 0, _NETWORK),  # r0 = version and header length; loads leave nothing in r1 to r5
        i(0xBF, 9, 0),
        i(0x77, 0, 0, 0, 4),
        i(0x15, 0, 0, len(version_4) + 1, 6),
        *version_4,  # r9 = length of the IP header, r0 = protocol
        i(0x05, 0, 0, len(version_6)),
        *version_6,
        i(0x15, 0, 0, len(tcp) + 1, _UDP),
        *tcp,
        i(0x05, 0, 0, len(udp)),
        *udp,
        i(0x07, 8, 0, 0, -1),  # r8 = segments beyond the first
        i(_ADD, 7, 8, 8 * _SEGMENTS),
        i(0xBF, 4, 9),
        i(0x2F, 4, 8),
        i(_ADD, 7, 4, 8 * _HEADERS),
        i(0x61, 3, 6, _GSO_SIZE),
        i(0xBF, 4, 9),
        i(0x0F, 4, 3),
        i(0x07, 4, 0, 0, _ETHERNET),
        *_noted(8),
        i(0x2F, 3, 8),
        i(0x61, 2, 6, _LEN),
        i(0x1F, 2, 3),  # r2 = length of the last
    ]
    body = [
        i(0x18, 7, _PSEUDO_MAP_VALUE, 0, numbers),  # r7 = the array (two instructions wide)
        i(0),
        i(0x61, 2, 6, _LEN),
        i(_ADD, 7, 2, 8 * _BYTES),
        i(0x61, 8, 6, _GSO_SEGS),
        i(0xB5, 8, 0, len(split), 1),  # if r8 <= 1
        *split,
        i(0xBF, 4, 2),
        i(0xB7, 1, 0, 0, 1),
        *_noted(1),
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


def _noted(count: int) -> list[bytes]:
    """Return the instructions that add the register `count` to the number of packets of the size in r4."""
    i = bpf.instruction
    return [
        i(0xB5, 4, 0, 1, _SIZES - 1),  # if r4 <= 2047, skip
        i(0xB7, 4, 0, 0, _SIZES - 1),
        i(0x67, 4, 0, 0, 3),  # r4 <<= 3
        i(0xBF, 5, 7),
        i(0x0F, 5, 4),  # r5 = r7 + r4
        i(_ADD, 5, count, 0),
    ]


class Tap:
    """Counts the packets that leave one interface of a node, from now until `close`. OSError if the kernel refuses BPF.

    `pid` is that of the node's agent. While the count runs, each packet that leaves costs the node about 0.1 µs more,
    because the kernel copies its header for each listener. `pause` and `resume` are for callers that need only some of
    the packets.
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
        """Go on counting after `pause`."""
        if self._socket is None:
            self._socket = netns.network_of(self._pid, lambda: _listen(self._interface, self._filter))

    def pause(self) -> None:
        """Stop counting until `resume`, and keep the counts. The kernel may take some 10 ms for that."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def read(self) -> SizeCounts:
        """Return the counts up to now."""
        numbers = bpf.read(self._map, _COUNT)
        sizes = {size: count for size, count in enumerate(numbers[:_SIZES]) if count}
        return SizeCounts(sizes, numbers[_BYTES], numbers[_SEGMENTS], numbers[_HEADERS])

    def close(self) -> None:
        """Stop counting for good, and drop the counts."""
        self.pause()
        os.close(self._filter)
        os.close(self._map)


def _listen(interface: str, filter_: int) -> socket.socket:
    """Return a packet socket with the filter, bound to an interface."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # protocol 0: it hears nothing before its bind
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_BPF, filter_)
        sock.bind((interface, _ETH_P_ALL))
    except BaseException:
        sock.close()
        raise
    return sock
