"""The page's table of programs: what the machine ran, and in which version."""

from __future__ import annotations

from tunnelmark.report import environment_tables

RECORD = {
    "vpns": {
        "wireguard-go": {
            "version": "0.0.20220316",
            "programs": {"wireguard-go": {"path": "/usr/bin/wireguard-go"}, "ip": {"path": "/usr/bin/ip"}},
        }
    }
}


def test_a_vpns_version_is_not_said_to_be_that_of_the_programs_it_needs():
    rows = {(fact.name, fact.version) for fact in environment_tables.environment(RECORD).programs}
    assert rows == {("wireguard-go", "0.0.20220316"), ("wireguard-go ip", "")}
