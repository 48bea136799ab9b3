"""nginx on a node, for servers that are reached through one port of HTTPS, as in the field, and do not open it themselves.

Its certificate and key are `server.crt` and `server.key` of the node's folder (see `_certificate.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tunnelmark.model.steps import Daemon, File, TcpPort
from tunnelmark.vpns.base import MeshNode

PROGRAM, PACKAGE = "nginx", "nginx"

_CONFIGURATION = """\
daemon off;
user root;
error_log stderr warn;
pid "{folder}/nginx.pid";
events {{}}
http {{
    access_log off;
    client_body_temp_path "{folder}/body";
    proxy_temp_path "{folder}/proxy";
    fastcgi_temp_path "{folder}/fastcgi";
    uwsgi_temp_path "{folder}/uwsgi";
    scgi_temp_path "{folder}/scgi";
    server {{
        listen {listen};
        ssl_certificate "{folder}/server.crt";
        ssl_certificate_key "{folder}/server.key";
{locations}
    }}
{servers}}}
"""


def config(host: MeshNode, port: int, locations: Mapping[str, str], *, http2: bool = False, servers: str = "") -> File:
    """Its nginx.conf: what it does by the path that is asked for, at that port of the node; `servers` are further server blocks."""
    content = _CONFIGURATION.format(
        folder=host.dir,
        listen=f"{host.endpoint(port)} ssl" + " http2" * http2,
        locations="\n".join(f"        location {path} {{ {does} }}" for path, does in locations.items()),
        servers=servers,
    )
    return host.file("nginx.conf", content)


def daemon(host: MeshNode, port: int, *, control: bool = False) -> Daemon:
    """The server, with the file of `config`."""
    argv = (PROGRAM, "-e", "stderr", "-p", str(host.dir), "-c", host.path("nginx.conf"))
    return host.daemon("nginx", *argv, ready=TcpPort(port), control=control)
