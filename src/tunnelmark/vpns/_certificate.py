"""Makes self-signed certificates, valid for a day, for VPNs that pin a certificate instead of trusting an authority."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tunnelmark.vpns.base import MeshNode


def self_signed(common_name: str, addresses: Sequence[IPv4Address | IPv6Address] = ()) -> tuple[x509.Certificate, str]:
    """Return a certificate for a common name and for addresses, and its fresh private key as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    if addresses:
        names = x509.SubjectAlternativeName([x509.IPAddress(address) for address in addresses])
        builder = builder.add_extension(names, critical=False)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return builder.sign(key, hashes.SHA256()), private


def trust(host: MeshNode) -> dict[str, str]:
    """Return the environment that makes a program in Go trust `server.crt` in its node's folder (crypto/x509)."""
    return {"SSL_CERT_FILE": host.path("server.crt")}
