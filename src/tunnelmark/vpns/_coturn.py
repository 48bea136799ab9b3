"""Runs coturn as a STUN server, and with credentials as a TURN server, for VPNs that would use servers on the Internet.

A node learns from STUN how its router maps it (RFC 8489); TURN relays packets over UDP (RFC 8656).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from tunnelmark.model.steps import Daemon, File, UdpPort
from tunnelmark.vpns.base import MeshNode

PROGRAM, PACKAGE = "turnserver", "coturn"
PORT, SECOND = 3478, 3479
"""The ports on which coturn listens over UDP and TCP: the port of RFC 8489, and one more.

A client that asks both ports sees whether its router maps it differently for each destination.
"""

REALM = "tunnelmark"


@dataclass(frozen=True, slots=True)
class TurnUser:
    """The name and the password of a user of a TURN server; `fresh` makes a new one for each deployment."""

    name: str
    password: str = field(repr=False)

    @classmethod
    def fresh(cls) -> TurnUser:
        """Return a user with a new random password."""
        return cls("lab", secrets.token_hex(16))


def endpoints(host: MeshNode) -> tuple[str, str]:
    """Return the server's address on that node with the port PORT, such as `10.50.0.1:3478`, and with SECOND."""
    return host.endpoint(PORT), host.endpoint(SECOND)


def config(host: MeshNode, user: TurnUser | None = None) -> File:
    """Return the server's configuration file, turnserver.conf(5).

    The server listens only on the node's underlay address, with TLS, DTLS and its command-line interface off. Without
    a user it serves STUN only.
    """
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
    """Return the server's daemon, which reads the file of `config`.

    It is ready when it listens on `PORT`, which is the last port that it opens.
    """
    return host.daemon("coturn", PROGRAM, "-c", host.path("turnserver.conf"), ready=UdpPort(PORT))
