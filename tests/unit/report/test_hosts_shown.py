"""A report of a run over several hosts shows each of them, and a report of any run says on its first page where its nodes were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tunnelmark.analyse import judge
from tunnelmark.report import environment_tables, host_tables, html, markdown
from unit.builders import Study
from unit.report.test_html import ENVIRONMENT, Page


def host(kernel: str, cpu: str, **tools: str) -> dict[str, Any]:
    machine = {"system": "Debian 12", "kernel": kernel, "cpu": cpu, "cores": 4, "memory_bytes": 16 << 30}
    return {
        "machine": machine | {"virtualisation": "none"},
        "tools": {name: {"version": version, "path": f"/usr/bin/{name}"} for name, version in tools.items()},
        "host_sysctls": {"net.core.rmem_max": "212992", "net.ipv4.tcp_ecn": "2" if cpu == "an old processor" else "1"},
        "socket_buffer": 212992,
    }


RECORD = ENVIRONMENT | {
    "inventory": {
        "hosts": [
            {"name": "gamma", "ssh": "root@192.0.2.13", "interface": "eth1", "roles": ["middle"]},
            {"name": "alpha", "ssh": "-i /a/secret/place root@192.0.2.11", "interface": "eth1", "roles": ["node"]},
            {"name": "beta", "ssh": "root@192.0.2.12", "interface": "eth2", "roles": ["node"]},
        ],
        "network": {"kind": "vlan", "numbers": [3000, 3999]},
    },
    "hosts": {
        "alpha": host("6.1.0", "a new processor", iperf3="3.12", ping="20221126"),
        "beta": host("6.1.0", "a new processor", iperf3="3.12", ping="20221126"),
        "gamma": host("5.10.0", "an old processor", iperf3="3.9", ping="20221126"),
    },
    "lab": {"backend": "ssh", "hosts": {"beta": {"interface": "eth2", "mtu": 9000}}},
    "fingerprint": {"kernel": "6.1.0"},
}


def page(record: dict[str, Any]) -> str:
    return html.render(judge(replace(Study(blocks=3), environment=record).results()))


def test_each_host_has_a_row_with_its_part_processor_kernel_and_card():
    found = {row[0]: row[1:] for row in host_tables.rows(RECORD)}
    assert list(found) == ["gamma", "alpha", "beta"]
    assert found["gamma"] == ("the links", "an old processor", "4", "16 GiB", "5.10.0", "Debian 12", "eth1")
    assert found["beta"][-1] == "eth2, MTU 9000"
    text = page(RECORD)
    Page(text)
    table = text[text.index('<h3 id="hosts">') :]
    assert all(value in table for row in host_tables.rows(RECORD) for value in row)


def test_the_first_page_says_where_the_nodes_were():
    head = page(RECORD).partition("<main>")[0]
    assert "joined by VLANs: gamma (the links): an old processor, 4 cores, 16 GiB of memory, Linux 5.10.0" in head
    assert "alpha (a node) and beta (a node): a new processor" in head
    alone = page(ENVIRONMENT).partition("<main>")[0]
    assert "Nodes: network namespaces of one machine: a processor, 2 cores, 8 GiB of memory, Linux 6.1" in alone
    assert "Nodes:" not in page({}).partition("<main>")[0]


def test_a_tool_or_setting_that_is_not_the_same_on_all_hosts_names_them():
    found = environment_tables.environment(RECORD)
    tools = {(fact.program, fact.version): fact.hosts for fact in found.programs if not fact.owner}
    assert tools == {("iperf3", "3.12"): "alpha and beta", ("iperf3", "3.9"): "gamma", ("ping", "20221126"): ""}
    settings = dict(found.settings)
    assert settings["all hosts: host sysctls: net.core.rmem_max"] == "212992"
    assert settings["host gamma: host sysctls: net.ipv4.tcp_ecn"] == "2"
    assert settings["fingerprint of alpha: kernel"] == "6.1.0"  # the first node's, whatever host is named first


def test_how_a_host_is_reached_is_not_in_the_reports():
    for text in (page(RECORD), markdown.render(judge(replace(Study(blocks=3), environment=RECORD).results()))):
        assert "secret" not in text
        assert "an old processor" in text


def test_a_host_s_record_may_lack_anything():
    bare: dict[str, Any] = {"hosts": {"a": {}, "b": None}}
    assert "The hosts" in page(bare)
    assert "The hosts" in page(bare | {"inventory": {"hosts": None}})
