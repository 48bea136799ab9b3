"""Starts an nginx that serves a folder, and defines the lines that it logs; all workloads over HTTP share it.

It relies on these facts about nginx 1.22. Before it reads its configuration it opens the log file that it was built
with, unless `-e` names another. Its workers open `/dev/stdout` themselves, so the log appears in the program's output.
When a worker is asked to end, it writes its buffered log lines before it ends. HTTP/2 is a parameter of `listen` up to
version 1.25; later versions still accept it.
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
"""The fields of a log line, one line for each request.

They are: when the request was done (seconds since 1970), its connection's number, method, path, protocol, status, the
bytes of the body, all bytes (as nginx handed them to the socket or to TLS), and the seconds from the first byte read to
the last one written.
"""

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
    """Return an address and a port as URLs and nginx write them: `10.60.0.1:8080` or `[fd60::1]:8080`."""
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
    """Return the configuration and the program of an nginx that serves the files below `root` at `address` and `port`.

    Its own files go below `folder`. It writes its access log to standard output, one line in LOG_FORMAT for each
    request: at once, or if `log_buffer` is set (such as "64k") whenever that size has gathered, and at the end. It runs
    until it is asked to end.
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
    """Return the paths of a self-signed certificate for `address`, and the command that makes it.

    A workload runs the command on `node` in its set-up. It makes the certificate and its key in `folder` within some
    milliseconds (ECDSA with P-256), so each trial has a certificate for its own addresses, and clients can verify it.
    """
    made = Tls(folder / "tls.crt", folder / "tls.key")
    argv = (
        *(OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", "/CN=tunnelmark", "-addext", f"subjectAltName=IP:{address}", "-days", "3650"),
        *("-keyout", str(made.key), "-out", str(made.certificate)),
    )
    return made, Command(node, argv)
