"""Makes and loads the certificates of a cluster: one authority, and one key pair, signed by it, that all members use.

Dask checks at both ends of a connection that the authority has signed the other end's certificate. Every user who has
the folder can join the cluster, and a worker runs what it is sent: so only the cluster's machines may have the folder.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tunnelmark.errors import StoreError, UsageError

if TYPE_CHECKING:
    from distributed.security import Security

AUTHORITY, CERTIFICATE, KEY = "ca.pem", "cluster.pem", "cluster-key.pem"
DAYS = 30
"""The number of days for which a certificate is valid by default."""


def make(folder: Path, days: int = DAYS) -> None:
    """Write `AUTHORITY`, `CERTIFICATE` and `KEY` into a new folder that only its owner can read.

    StoreError if the folder exists or cannot be made.

    The authority's own key is not kept: nothing else can be signed by it later.
    """
    now = datetime.datetime.now(datetime.UTC)
    ends = now + datetime.timedelta(days=days)
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    name = _name("tunnelmark cluster authority")
    root = _builder(name, name, authority, now, ends)
    root = root.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    signed = _builder(_name("tunnelmark cluster"), name, key, now, ends)
    signed = signed.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        folder.mkdir(mode=0o700, parents=True)
        for file, content in (
            (AUTHORITY, root.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)),
            (CERTIFICATE, signed.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)),
            (KEY, private),
        ):
            path = folder / file
            path.touch(mode=0o600)
            path.write_bytes(content)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be made: {error.strerror}", hint="name a folder that is not there yet"
        ) from error


def security(folder: Path) -> Security:
    """Return Dask's TLS settings with the files in `folder`; both ends of a connection then need a certificate.

    UsageError if a file is missing.
    """
    for file in (AUTHORITY, CERTIFICATE, KEY):
        if not (folder / file).is_file():
            raise UsageError(
                f"{folder} has no {file}", hint=f"make the folder with `tunnelmark cluster certificates {folder}`"
            )
    return settings(str(folder / AUTHORITY), str(folder / CERTIFICATE), str(folder / KEY))


def settings(authority: str, certificate: str, key: str) -> Security:
    """Return Dask's TLS settings from authority, certificate and key: each is a path, or the PEM text itself."""
    from distributed.security import Security

    ours = {
        f"tls_{role}_{kind}": value
        for role in ("scheduler", "worker", "client")
        for kind, value in (("cert", certificate), ("key", key))
    }
    return Security(tls_ca_file=authority, require_encryption=True, **ours)  # type: ignore[no-untyped-call]


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    begins: datetime.datetime,
    ends: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - datetime.timedelta(hours=1))  # clocks of machines differ
        .not_valid_after(ends)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
