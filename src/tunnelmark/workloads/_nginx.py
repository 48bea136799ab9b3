"""What the workloads over HTTP share: an nginx on a node that serves a folder, and the lines that it logs.

Facts about nginx 1.22 that decide this: before it has read its configuration it opens the log that it was built with,
unless `-e` names another; `/dev/stdout` is opened again by its own workers, so the log lands in the program's output;
a worker that is asked to end writes what it has buffered. HTTP/2 is a word of `listen` up to 1.25 and still understood
after.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import PurePath, PurePosixPath

from tunnelmark.model.steps import Command, File, TcpPort
from tunnelmark.workloads.base import Program

PROGRAM, PACKAGE = "nginx", "nginx"
OPENSSL, OPENSSL_PACKAGE = "openssl", "openssl"

LOG_FORMAT = (
    "$msec $connection $request_method $uri $server_protocol $status $body_bytes_sent $bytes_sent $request_time"
)
"""Seconds since 1970 at which a request was done, number of its connection, method, path, protocol, status, bytes of the
body and of all (as nginx handed them to the socket or to TLS), seconds from the first byte read to the last written."""

_SSL = """
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.3;
        ssl_session_tickets off;
"""

_CONFIGURATION = """
daemon off;
user root;
worker_processes 1;
error_log stderr warn;
pid {folder}/nginx.pid;
events {{
    worker_connections 4096;
}}
http {{
    log_format workload '{log_format}';
    access_log /dev/stdout workload{buffer};
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_requests 1000000;
    server {{
        listen {listen};
        root {root};
{ssl}
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Tls:
    """The files of a certificate and its key on the server's node."""

    certificate: PurePath
    key: PurePath


def at(address: IPv4Address | IPv6Address, port: int) -> str:
    """An address with a port as URLs and nginx write it: `10.60.0.1:8080` or `[fd60::1]:8080`."""
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def server(
    node: str,
    address: IPv4Address | IPv6Address,
    port: int,
    root: PurePath,
    folder: PurePosixPath,
    *,
    tls: Tls | None = None,
    http2: bool = False,
    log_buffer: str = "",
    name: str = "server",
) -> tuple[File, Program]:
    """The configuration and the program of an nginx that serves the files below `root` at `address` and `port`.

    Its own files go below `folder`, and its access log to its standard output: a line a request in LOG_FORMAT, at once,
    or with `log_buffer` such as "64k" when so much has gathered and at the end. It stays until it is asked to end.
    """
    ours = folder / f"nginx-{name}"
    configuration = ours / "nginx.conf"
    content = _CONFIGURATION.format(
        folder=ours,
        log_format=LOG_FORMAT,
        buffer=f" buffer={log_buffer}" if log_buffer else "",
        listen=at(address, port) + (" ssl" if tls else "") + (" http2" if http2 else ""),
        root=root,
        ssl=_SSL.format(certificate=tls.certificate, key=tls.key) if tls else "",
    )
    program = Program(
        name=name,
        node=node,
        argv=(PROGRAM, "-e", "stderr", "-p", str(ours), "-c", str(configuration)),
        ready=TcpPort(port),
        long_running=True,
    )
    return File(node, configuration, content), program


def certificate(node: str, address: IPv4Address | IPv6Address, folder: PurePosixPath) -> tuple[Tls, Command]:
    """A step that makes a self-signed certificate for `address`, and where its files are then.

    It takes some milliseconds (ECDSA with P-256), so every trial has its own, and clients can check the address in it.
    """
    made = Tls(folder / "tls.crt", folder / "tls.key")
    argv = (
        *(OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", "/CN=tunnelmark", "-addext", f"subjectAltName=IP:{address}", "-days", "3650"),
        *("-keyout", str(made.key), "-out", str(made.certificate)),
    )
    return made, Command(node, argv)
