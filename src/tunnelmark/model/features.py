"""What is known of a VPN beside how to start it: one row of the feature matrix, each cell with its source and date."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One cell of the feature matrix: what is known, where it is said or how it was seen, and when."""

    value: str
    source: str
    date: str  # ISO 8601


@dataclass(frozen=True, slots=True)
class Features:
    """A VPN's row of the feature matrix (criteria of seeds 000 and 001 that a slice of the lab can show)."""

    transport: Fact  # what carries the outer packets: UDP, TCP, QUIC ...
    encryption: Fact  # data-channel cipher as shipped
    handshake: Fact
    routing: Fact  # mesh, hub and spoke, point to point
    inner: Fact  # what the overlay carries: IPv4, IPv6, Ethernet
    mtu: Fact  # default MTU of the overlay interface
    datapath: Fact  # kernel or user space, threads, offloads used
    licence: Fact
