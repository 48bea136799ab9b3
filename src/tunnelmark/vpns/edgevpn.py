"""EdgeVPN: IP packets over libp2p streams; nodes with the same configuration find each other by multicast DNS."""

from __future__ import annotations

from tunnelmark.vpns.base import Daemon, Deployment, Driver, Fact, Features, File, Mesh, MeshNode, Options, Overlay

INTERFACE = "edgevpn0"  # as shipped


PORT = 4001  # libp2p's usual one


def _daemon(host: MeshNode) -> Daemon:
    """It listens on TCP only: its QUIC (quic-go 0.49) panics when it is built by Go 1.25 or later."""
    listen = f"/ip4/{host.underlay}/tcp/{PORT}"
    argv = ("edgevpn", "--config", str(host.dir / "edgevpn.yaml"), "--address", str(host.overlay))
    return Daemon(host.name, "edgevpn", (*argv, "--listen-maddrs", listen), env={"HOME": str(host.dir / "home")})


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """All nodes start alike, and nobody has to be told of anybody."""
    return Deployment(
        overlays={host.name: Overlay(INTERFACE, host.overlay.ip) for host in mesh.hosts},
        staging=(("sh", "-c", "umask 077; edgevpn -g > edgevpn.yaml"),),
        files=tuple(File(host.name, host.dir / "edgevpn.yaml", from_staging="edgevpn.yaml") for host in mesh.hosts),
        phases=(tuple(_daemon(host) for host in mesh.hosts),),
    )


_DOCS = "https://github.com/mudler/edgevpn"
_HELP = "edgevpn --help"
_SEEN = "2026-11-22"  # when the facts below were looked up

DRIVER = Driver(
    name="edgevpn",
    title="EdgeVPN",
    homepage=_DOCS,
    packages=(),
    programs=("edgevpn", "sh"),
    version=("edgevpn", "--version"),
    version_pattern=r"version v?(\d\S+)",
    deploy=deploy,
    startup_time=15.0,
    recipe="edgevpn",
    features=Features(
        transport=Fact("libp2p streams over TCP, QUIC or WebRTC; here TCP", "measured here, 0.30.2: log", _SEEN),
        encryption=Fact("that of libp2p's transports: TLS 1.3 or Noise", _DOCS, _SEEN),
        handshake=Fact("libp2p's, among nodes that share a configuration with one-time keys", f"{_DOCS}: otp", _SEEN),
        routing=Fact(
            "full mesh, addresses agreed on in a shared ledger", f"{_HELP}: --ledger-announce-interval", _SEEN
        ),
        inner=Fact("IPv4", f"{_HELP}: --address", _SEEN),
        mtu=Fact("1200", f"{_HELP}: --mtu; measured here, 0.30.2", _SEEN),
        datapath=Fact("user space over TUN, a stream a packet or pair of nodes", _DOCS, _SEEN),
        licence=Fact("Apache-2.0", f"{_DOCS}: LICENSE", _SEEN),
    ),
)
