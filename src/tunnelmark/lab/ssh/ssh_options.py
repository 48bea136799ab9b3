"""Options of ssh(1) for connections that no one sits at."""

from __future__ import annotations

BATCH = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
"""Fail rather than ask for a password or for the trust in an unknown host key; connect within 10 s."""

ALIVE = ("-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3")
"""End the connection when the host has not answered for 30 s."""
