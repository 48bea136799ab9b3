"""Options of ssh(1) for connections that run without a user at a terminal."""

from __future__ import annotations

BATCH = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
"""Fail instead of asking for a password or for trust in an unknown host key; connect within 10 s."""

ALIVE = ("-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3")
"""End the connection when the host has not answered for 30 s."""
