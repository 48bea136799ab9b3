"""Nix: the requests and bytes that nginx logged, against what Nix must ask for and what the interfaces counted."""

from __future__ import annotations

import math
import os
import re
import subprocess

import pytest

from contract.crosschecks import AGREE, Crosscheck, Seen
from tunnelmark import registry
from tunnelmark.run.assets import folder_of

_PATHS = 60
_OPTIONS = {"paths": _PATHS, "size": "8 MiB"}
_HEADERS = 20 + 20 + 12  # IPv4, TCP, its timestamps
_RECORD = 16384  # bytes of data in a record of TLS at most
_TLS = 22  # bytes that a record of TLS 1.3 has around its data: header 5, type 1, tag 16


def agrees(seen: Seen) -> None:
    _asked_for_each_path_once(seen)
    logged = _logged(seen)
    counted = seen.payload(seen.ends.target, "rx", _HEADERS)
    # SYN and FIN have no payload, but more options; a lossy link's segments may arrive twice.
    slack = 100_000 if seen.lossy else 2_000
    assert abs(logged - counted) <= AGREE * counted + slack, f"{logged} logged, {counted:.0f} counted"


def agrees_with_tls(seen: Seen) -> None:
    _asked_for_each_path_once(seen)
    assert seen.value("connections") == 1  # HTTP/2 carries all requests in one
    logged = _logged(seen)
    counted = seen.payload(seen.ends.target, "rx", _HEADERS)
    around = math.ceil(logged / _RECORD) * _TLS
    assert abs(logged + around - counted) <= AGREE * counted + 100_000, f"{logged} logged, {counted:.0f} counted"


def _asked_for_each_path_once(seen: Seen) -> None:
    assert seen.value("narinfo_requests") == _PATHS
    assert seen.value("nar_requests") == _PATHS
    # Whether it is a cache, and twice whether it has the root.
    assert seen.value("other_requests") == 3
    assert seen.value("requests") == 2 * _PATHS + 3
    assert seen.value("failures") == 0
    assert seen.value("goodput") * seen.value("seconds") / 8 == pytest.approx(_nar_bytes(seen))


def _logged(seen: Seen) -> int:
    """All bytes that nginx sent, heads and bodies."""
    return sum(int(line.split()[7]) for line in seen.outputs["server"].splitlines())


def _nar_bytes(seen: Seen) -> int:
    """Bytes of the archives' bodies by the server's log."""
    lines = [line.split() for line in seen.outputs["server"].splitlines()]
    return sum(int(line[6]) for line in lines if line[3].startswith("/nar/"))


def refuses_what_is_not_signed(seen: Seen) -> None:
    """The very command that copied refuses the closure, if the key that signed it is not among the trusted ones."""
    agrees(seen)
    workload = registry.workload("nix")
    options = workload.options.model_validate(_OPTIONS)
    made = folder_of(workload.assets_with(options)[0])
    other = seen.raw / "other"
    other.mkdir()
    for name in ("manifest.json", "root"):
        (other / name).write_text((made / name).read_text())
    program = workload.traffic(seen.ends, options).client
    words = [
        f"file://{made}/cache" if word.startswith("http://") else word.replace(str(seen.ends.folder), str(seen.raw))
        for word in program.argv
    ]
    assert words[4] == str(seen.ends.assets["nix-cache"])
    words[4] = str(other)
    settings = {"experimental-features": "nix-command", "build-users-group": "", "substituters": ""}
    (seen.raw / "nix.conf").write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    ours = {"HOME": str(seen.raw / "home"), "NIX_CONF_DIR": str(seen.raw)}
    for key, code in (((made / "key.public").read_text(), 0), (_other_key(), 1), ("", 1)):
        (other / "key.public").write_text(key)
        done = _run(words, ours)
        assert f", code {code}" in done, done
        if code:
            assert re.search(r"cannot add path .* because it lacks a valid signature", done), done
        _run(["sh", "-c", f"chmod -R u+w '{seen.raw}/store' && rm -rf '{seen.raw}/store'"], ours)


def _other_key() -> str:
    """A key of the same name that signed nothing: its bytes are all zero, but for the last."""
    return "tunnelmark-1:" + "A" * 42 + "E="


def _run(words: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(words, env=os.environ | env, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


CROSSCHECKS = [
    Crosscheck("nix", refuses_what_is_not_signed, _OPTIONS),
    Crosscheck("nix", agrees_with_tls, _OPTIONS | {"tls": True}, name="tls"),
]
