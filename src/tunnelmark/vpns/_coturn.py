"""coturn as a STUN server, and with credentials as a TURN server, for VPNs that would ask servers on the Internet for both.

A node learns from STUN how its router maps it (RFC 8489); TURN relays packets over UDP (RFC 8656).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from tunnelmark.model.steps import Daemon, File, UdpPort
from tunnelmark.vpns.base import MeshNode

PROGRAM, PACKAGE = "turnserver", "coturn"
PORT, SECOND = 3478, 3479
"""Where it listens over UDP and TCP: the port of RFC 8489, and one more. A client that asks both sees whether its port depends on which one it asks."""

REALM = "tunnelmark"


@dataclass(frozen=True, slots=True)
class TurnUser:
    """Who may use a TURN server; made by `fresh`, so that each deployment has its own."""

    name: str
    password: str = field(repr=False)

    @classmethod
    def fresh(cls) -> TurnUser:
        """A user with a password that no one else has."""
        return cls("lab", secrets.token_hex(16))


def endpoints(host: MeshNode) -> tuple[str, str]:
    """Both addresses of the server on that node, as `10.50.0.1:3478`."""
    return host.endpoint(PORT), host.endpoint(SECOND)


def config(host: MeshNode, user: TurnUser | None = None) -> File:
    """The server's turnserver.conf(5): on the node's underlay address only, without what else it would open; without a user STUN only."""
    lines = [
        f"listening-ip={host.underlay}",
        f"listening-port={PORT}",
        f"aux-server={host.endpoint(SECOND)}",
        "no-tls",
        "no-dtls",
        "no-cli",
        "log-file=stdout",
        f"pidfile={host.path('turnserver.pid')}",
        f"userdb={host.path('turn.db')}",
    ]
    if user is None:
        lines.append("stun-only")
    else:
        lines += [f"relay-ip={host.underlay}", "lt-cred-mech", f"realm={REALM}", f"user={user.name}:{user.password}"]
    return host.file("turnserver.conf", "\n".join(lines) + "\n")


def daemon(host: MeshNode) -> Daemon:
    """The server, with the file of `config`; it listens on its own port last."""
    return host.daemon("coturn", PROGRAM, "-c", host.path("turnserver.conf"), ready=UdpPort(PORT))
