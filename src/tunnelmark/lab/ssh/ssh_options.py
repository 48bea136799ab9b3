"""Options of ssh(1) for connections that no one sits at."""

from __future__ import annotations

BATCH = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
"""Ask for nothing: a password, or whether an unknown host key is right, is an error."""

ALIVE = ("-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3")
"""Miss a host that has vanished after 30 s."""
