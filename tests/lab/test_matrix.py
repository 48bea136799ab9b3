"""`tunnelmark matrix --measure` on real daemons: what it saw is kept, and stands in the matrix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tunnelmark import registry
from tunnelmark.cli.command import main
from tunnelmark.host import programs

pytestmark = pytest.mark.root


def test_what_is_seen_of_a_vpn_at_rest_is_kept_beside_what_was_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.require(registry.vpn_part(registry.vpn("wireguard-go")))
    peers = programs.packages_home()
    monkeypatch.setenv("TUNNELMARK_PACKAGES", str(peers))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    known = {"tinc": {"measured_mtu": {"value": "1", "source": "a test", "date": "2026-11-22"}}}
    registry.measured_file().parent.mkdir(parents=True)
    registry.measured_file().write_text(json.dumps(known))

    assert main(["matrix", "--measure", "wireguard-go"]) == 0
    kept = json.loads(registry.measured_file().read_text())
    assert kept["tinc"] == known["tinc"]
    seen = {key: cell["value"] for key, cell in kept["wireguard-go"].items()}
    assert seen["measured_mtu"] == "1420"
    assert int(seen["measured_threads"]) >= 1
    assert float(seen["measured_memory"].removesuffix(" MiB")) > 1
    assert 0 < float(seen["measured_first_packet"].removesuffix(" s")) < 30
    row = next(row for row in registry.matrix() if row.name == "wireguard-go")
    assert row.cells["measured_mtu"].value == "1420"
