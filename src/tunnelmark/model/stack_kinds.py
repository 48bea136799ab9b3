"""What a recorded stack was taken in: by the names of the kernel's functions, which do not change with the VPN."""

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
"""What a sample was taken in, in the order of the table."""

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
    """What a sample was taken in (see KINDS), by the names of its frames, outermost first, joined by `;`.

    A soft interrupt is one wherever it began: most begin at the end of a send, whose packets the kernel then carries on.
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
    """How often each stack was seen, from a folded file: `program;frame;frame... count`."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if stack and count.isdigit():
            found[stack] += int(count)
    return found


def shares_of(text: str, programs: frozenset[str]) -> dict[str, float]:
    """Per cent of all samples of a folded file that these programs (by the kernel's names of threads) have, by kind; {} without samples."""
    stacks = folded_stacks(text)
    total = stacks.total()
    found: Counter[str] = Counter()
    for stack, count in stacks.items():
        name, _, frames = stack.partition(";")
        if name in programs:
            found[kind(frames)] += count
    return {said: 100 * found[said] / total for said in KINDS} if total else {}
