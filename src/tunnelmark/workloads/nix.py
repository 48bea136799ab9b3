"""The workload `nix`: the real Nix copies a closure of many small and some large paths from a binary cache over HTTP.

It relies on these facts about Nix 2.8. Given the root of a closure, Nix asks for each path's `.narinfo` and `.nar`
itself. It accepts content-addressed paths without a signature, so every path here is the output of a derivation, as
packages are. It stores in its home what it learned about a cache, so the home is removed together with the store. It
retries by itself when a transfer fails, and prints that.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated

from pydantic import Field, model_validator

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, CopyFile, File
from tunnelmark.plan.fields import DurationText, SizeText
from tunnelmark.units import Duration, Size
from tunnelmark.workloads import _nginx
from tunnelmark.workloads.base import Asset, Endpoints, Program, Reading, Traffic, Workload

_SERVER, _CLIENT = "server", "client"
_ASSET = "nix-cache"
_PORT, _TLS_PORT = 8080, 8443
_LARGE_EVERY = 20  # the last of each so many paths is large
_LARGE_SHARE = 0.75  # the share of all bytes that the large paths hold
_FAN = 4  # how many paths a path refers to: the closure is a tree, about four levels deep for a few hundred paths
_EXPECTED = 40_000_000  # bytes/s: the rate from which the plan estimates the window
_GRACE_S = 10.0  # more seconds, to count the paths that arrived
_TIMED_OUT = ("124", "137")  # the exit codes of timeout(1)

_SETTINGS = """
experimental-features = nix-command
build-users-group =
sandbox = false
substitute = false
substituters =
"""

_CLOSURE = """
# Path i holds the bytes of data/i and refers to the paths fan * i + 1 to fan * i + fan, as far as there are so many.
# Each is the output of a derivation, as packages are: what Nix takes only with a signature.
{ count, fan }:
let
  program = "${builtins.path { path = ./shell; name = "shell"; }}/busybox";
  below = i: builtins.filter (n: n < count) (builtins.genList (n: fan * i + 1 + n) fan);
  paths = builtins.genList (i: derivation {
    name = "path-${toString i}";
    system = builtins.currentSystem;
    builder = program;
    args = [ "sh" "-c" "$program mkdir $out && $program cp $data $out/data && echo $references >$out/references" ];
    data = builtins.path { path = ./data + "/${toString i}"; name = "data-${toString i}"; };
    references = map (builtins.elemAt paths) (below i);
    inherit program;
  }) count;
in
builtins.head paths
"""

_MAKE = r"""
set -eu
here=$PWD fan=$1
shift
# NIX_REMOTE is the store of commands that name none: Nix would make /nix on this machine.
export HOME="$here/home" NIX_CONF_DIR="$here/settings" NIX_REMOTE="$here/source"
mkdir -p "$HOME" data shell
cp "$(command -v busybox)" shell/busybox
count=0
for size in $(cat sizes); do
    # The same bytes everywhere, which no VPN can compress.
    openssl enc -aes-128-ctr -nosalt -K "$(printf %032x $count)" -iv 0 -in /dev/zero 2>/dev/null |
        head -c "$size" >data/$count
    count=$((count + 1))
done
root=$(nix-build --quiet closure.nix --arg count $count --arg fan "$fan" --no-out-link)
nix-store --generate-binary-cache-key tunnelmark-1 key.secret key.public
nix store sign --key-file key.secret --recursive "$root"
nix copy --from "$here/source" --to "file://$here/cache?compression=none" "$root"
bytes=$(cat cache/*.narinfo | sed -n 's/^NarSize: //p' | { sum=0; while read -r n; do sum=$((sum + n)); done; echo $sum; })
printf '{"root": "%s", "paths": %d, "bytes": %d}\n' "$root" $count "$bytes" >manifest.json
printf '%s' "$root" >root
chmod -R u+w source
rm -rf source data home shell
"""

_COPY = r"""
asset=$1 store=$2
shift 2
cat "$asset/manifest.json"
begin=$(date +%s%N)
"$@" --option trusted-public-keys "$(cat "$asset/key.public")" "$(cat "$asset/root")" 2>&1
code=$?
printf '\ncopied in %d us, code %d\n' $((($(date +%s%N) - begin) / 1000)) $code
[ $code -eq 0 ] || exit $code
nix path-info --store "$store" --recursive "$(cat "$asset/root")" | sed -n '$='
"""

_MANIFEST = re.compile(r'^\{"root": ".*$', re.MULTILINE)
_ENDED = re.compile(r"^copied in (\d+) us, code (\d+)\n(?:(\d+)\n)?", re.MULTILINE)
_ERROR = re.compile(r"^error: (.*)$", re.MULTILINE)
_AGAIN = re.compile(r"retrying in \d+ ms")
_LOGGED = re.compile(r"^(\d+\.\d+) (\d+) (\S+) (\S+) (\S+) (\d+) (\d+) (\d+) (\d+\.\d+)$")


class NixOptions(Options):
    """`size` is the size of the data in all `paths` together. One path in twenty is large; these hold most of the data.

    `connections` is the largest number of connections that Nix opens. With `tls` they carry HTTP/2. `timeout` is how
    long the copy may take: on a bad link it can take minutes.
    """

    paths: Annotated[int, Field(ge=1, le=5000)] = 400
    size: Annotated[SizeText, Field(le=4 << 30)] = Size(200 << 20)
    tls: bool = False
    connections: Annotated[int, Field(ge=1, le=1000)] = 25
    timeout: DurationText = Duration(120)

    @model_validator(mode="after")
    def _every_path_holds_something(self) -> NixOptions:
        if self.size < 1024 * self.paths:
            raise ValueError("should have a size of at least 1 KiB for each of its paths")
        return self

    def sizes(self) -> tuple[int, ...]:
        """Return the bytes of data in each path, in the order of the paths."""
        large = self.paths // _LARGE_EVERY
        if not large:
            return (int(self.size / self.paths),) * self.paths
        small = int(self.size * (1 - _LARGE_SHARE) / (self.paths - large))
        return tuple(
            int(self.size * _LARGE_SHARE / large) if place % _LARGE_EVERY == _LARGE_EVERY - 1 else small
            for place in range(self.paths)
        )


@dataclass(frozen=True, slots=True)
class _Request:
    """A line of the server's log."""

    connection: str
    method: str
    path: str
    status: int
    body: int  # bytes

    @property
    def kind(self) -> str:
        if self.method == "GET" and self.path.endswith(".narinfo"):
            return "narinfo_requests"
        if self.method == "GET" and self.path.startswith("/nar/"):
            return "nar_requests"
        return "other_requests"


def _assets(options: NixOptions) -> tuple[Asset, ...]:
    """Return the asset: a signed binary cache of the closure, its public key, and the store path of its root."""
    sizes = options.sizes()
    return (
        Asset(
            _ASSET,
            (("sh", "make.sh", str(_FAN)),),
            ("nix", "nix-build", "nix-store", "busybox", "openssl"),
            ("nix-bin", "busybox-static", _nginx.OPENSSL_PACKAGE),
            {
                "make.sh": _MAKE,
                "closure.nix": _CLOSURE,
                "settings/nix.conf": _SETTINGS,
                "sizes": "".join(f"{size}\n" for size in sizes),
            },
        ),
    )


def _traffic(ends: Endpoints, options: NixOptions) -> Traffic:
    """Return the traffic; the server is on the source, so bytes go from source to target as in every workload."""
    asset, port = ends.assets[_ASSET], _TLS_PORT if options.tls else _PORT
    settings, store, home = (ends.folder / name for name in ("nix", "store", "home"))
    # Nix must neither have nor know anything that an earlier trial left on the same node.
    setup: tuple[Command | CopyFile, ...] = (Command(ends.target, ("rm", "-rf", str(store), str(home))),)
    tls, env = None, {}
    if options.tls:
        tls, make = _nginx.certificate(ends.source, ends.source_address, ends.folder)
        known = ends.folder / "cache.crt"
        setup += (make, CopyFile(ends.source, ends.folder / "tls.crt", ends.target, known))
        env = {"NIX_SSL_CERT_FILE": str(known)}
    configuration, server = _nginx.server(
        *(ends.source, ends.source_address, port, PurePath(asset / "cache"), ends.folder),
        tls=tls,
        http2=options.tls,
        name=_SERVER,
    )
    copy = (
        *("timeout", "--kill-after=2", f"{float(options.timeout):g}", "nix", "copy", "--store", str(store)),
        *("--from", f"{'https' if options.tls else 'http'}://{_nginx.at(ends.source_address, port)}"),
        *("--option", "require-sigs", "true", "--option", "http-connections", str(options.connections)),
    )
    client = Program(
        _CLIENT,
        ends.target,
        ("sh", "-c", _COPY, "copy", str(asset), str(store), *copy),
        env={"HOME": str(home), "NIX_CONF_DIR": str(settings), **env},
    )
    return Traffic(
        servers=(server,),
        client=client,
        window=max(1.0, options.size / _EXPECTED),
        warmup=0.0,
        timeout=options.timeout + _GRACE_S,
        files=(configuration, File(ends.target, settings / "nix.conf", _SETTINGS)),
        setup=setup,
    )


def _read(outputs: dict[str, str], options: NixOptions) -> Reading:
    said = outputs.get(_CLIENT, "")
    manifest, ended = _MANIFEST.search(said), _ENDED.search(said)
    if manifest is None or ended is None:
        raise OutputUnreadable("the client did not say what it copied", hint="see the client's raw output")
    if ended[2] in _TIMED_OUT:
        raise WorkloadFailed(
            f"nix copy did not end within {float(options.timeout):g} s",
            hint="allow more by its option timeout, or see the VPN's logs: the path may carry no packets any more",
        )
    if ended[2] != "0":
        errors = _ERROR.findall(said)
        raise WorkloadFailed(
            f"nix copy ended with code {ended[2]}: {errors[-1] if errors else 'no reason given'}",
            hint="see the client's raw output, and the VPN's logs",
        )
    closure = json.loads(manifest[0])
    if int(ended[3] or 0) != closure["paths"]:
        raise WorkloadFailed(
            f"of {closure['paths']} paths {ended[3] or 'none'} are in the store after the copy",
            hint="see the client's raw output",
        )
    seconds = int(ended[1]) / 1e6
    requests = _requests(outputs.get(_SERVER, ""))
    kinds = [request.kind for request in requests]
    samples = [
        Sample("seconds", seconds),
        Sample("goodput", closure["bytes"] * 8 / seconds),
        Sample("requests", float(len(requests))),
        *(Sample(kind, float(kinds.count(kind))) for kind in ("narinfo_requests", "nar_requests", "other_requests")),
        Sample("failures", float(sum(not 200 <= request.status < 300 for request in requests))),
        Sample("retries", float(len(_AGAIN.findall(said)))),
        Sample("connections", float(len({request.connection for request in requests}))),
    ]
    return Reading(samples=tuple(samples), window=seconds, warmup=0.0)


def _requests(log: str) -> tuple[_Request, ...]:
    """Return the requests in the server's log. Raises OutputUnreadable if there are none, or a line is not one."""
    requests = []
    for line in log.splitlines():
        if (found := _LOGGED.match(line)) is None:
            raise OutputUnreadable(
                f"the server logged a line that is not a request: {line[:200]!r}",
                hint="this reader knows the log of `_nginx.LOG_FORMAT`; see the server's raw output",
            )
        requests.append(_Request(found[2], found[3], found[4], int(found[6]), int(found[7])))
    if not requests:
        raise OutputUnreadable("the server logged no request", hint="see its raw output")
    return tuple(requests)


WORKLOAD = Workload(
    name="nix",
    title="Download from a Nix binary cache",
    serves="downloads of many files",
    metrics=(
        Metric("seconds", "s", "time to copy the closure", "lower", primary=True),
        Metric("goodput", "bit/s", "bytes of the archives (NAR) over that time", "higher"),
        Metric("requests", "requests", "requests in all", "lower", compare="difference", feels="counts"),
        Metric(
            "narinfo_requests",
            "requests",
            "requests for what is known of a path",
            "lower",
            compare="difference",
            feels="counts",
        ),
        Metric(
            "nar_requests", "requests", "requests for a path's archive", "lower", compare="difference", feels="counts"
        ),
        Metric(
            "other_requests", "requests", "requests about the cache, and whether it has the root", "lower", "difference"
        ),
        Metric("failures", "requests", "requests without a good answer", "lower", compare="difference", feels="counts"),
        Metric("retries", "requests", "transfers that Nix tried again", "lower", compare="difference", feels="counts"),
        Metric(
            "connections",
            "connections",
            "connections that carried a request",
            "lower",
            compare="difference",
            feels="counts",
        ),
    ),
    traffic=_traffic,
    read=_read,
    programs=("nix", _nginx.PROGRAM, _nginx.OPENSSL),
    packages=("nix-bin", _nginx.PACKAGE, _nginx.OPENSSL_PACKAGE, "busybox-static"),
    options=NixOptions,
    assets=_assets,
)
