"""Classifies recorded call stacks by the kind of work that they show.

The names of the kernel's functions, which are the same for all VPNs, decide the kind. In a stack without kernel
functions, the names of the program's own functions show whether the work is cryptography.
"""

from __future__ import annotations

import re
from collections import Counter

KINDS = (
    "TUN read",
    "TUN write",
    "socket send",
    "socket receive",
    "soft interrupts",
    "waiting and waking",
    "other kernel",
    "cryptography",
    "other of the program",
)
"""The kinds of work that a stack may show, in the order of the report's table of them."""

_SOFTIRQ = re.compile(r"^(handle_softirqs|__do_softirq)$")
_CALLS = (
    ("TUN read", re.compile(r"^(tun_chr_read_iter|tun_do_read|tun_recvmsg|tap_do_read)$")),
    ("TUN write", re.compile(r"^(tun_chr_write_iter|tun_get_user|tun_sendmsg|tap_get_user)$")),
    ("socket send", re.compile(r"^(__sys_send\w+|___sys_sendmsg|sock_write_iter|sock_sendmsg|io_sendmsg|io_send)$")),
    ("socket receive", re.compile(r"^(__sys_recv\w+|___sys_recvmsg|sock_read_iter|sock_recvmsg|io_recvmsg|io_recv)$")),
    (
        "waiting and waking",
        re.compile(r"^(__schedule|schedule|do_futex|ep_poll|do_epoll_wait|do_sys_poll|do_select|do_pselect.*)$"),
    ),
)
_CRYPTOGRAPHY = re.compile(
    r"(chacha|poly1305|aes[_.-]?(gcm|ctr|ni|hw|v8)|\bAES|gcm|ghash|blake2|curve25519|x25519|salsa20"
    r"|/crypto/|^crypto/|^CRYPTO_|^EVP_|libcrypto|libsodium|mbedtls|ring_core|aws_lc)",
)


def kind(frames: str) -> str:
    """Return the kind of work (see KINDS) of a stack. `frames`: its function names, outermost first, joined by `;`.

    A stack in which a soft interrupt runs counts as `soft interrupts`, whatever it interrupted. Most soft interrupts
    run at the end of a `send` system call, when the kernel processes the packets that were sent.
    """
    names = frames.split(";")
    kernel = [name.removesuffix("_[k]") for name in names if name.endswith("_[k]")]
    if not kernel:
        return "cryptography" if any(map(_CRYPTOGRAPHY.search, names[-3:])) else "other of the program"
    if any(map(_SOFTIRQ.match, kernel)):
        return "soft interrupts"
    for said, pattern in _CALLS:
        if any(map(pattern.match, kernel)):
            return said
    return "other kernel"


def folded_stacks(text: str) -> Counter[str]:
    """Return how often each stack was seen, from the lines of a folded file: `program;frame;frame... count`.

    A key is the whole text before the count, which begins with the program's name.
    """
    found: Counter[str] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if stack and count.isdigit():
            found[stack] += int(count)
    return found


def shares_of(text: str, programs: frozenset[str]) -> dict[str, float]:
    """Return, by kind of work, the percentage of a file's samples that these threads spent; {} if it has no samples.

    `text`: the content of a folded file. 100 % are all its samples, also those of other threads. `programs`: the names
    of the threads, as the kernel has them.
    """
    stacks = folded_stacks(text)
    total = stacks.total()
    found: Counter[str] = Counter()
    for stack, count in stacks.items():
        name, _, frames = stack.partition(";")
        if name in programs:
            found[kind(frames)] += count
    return {said: 100 * found[said] / total for said in KINDS} if total else {}
