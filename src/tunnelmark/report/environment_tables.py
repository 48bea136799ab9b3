"""Turns the recorded environment of a run into rows to print.

A part that was not recorded has no row. A part with a name that is not known here has a row like any other.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tunnelmark.report import formatting, host_tables
from tunnelmark.report.host_tables import mapping

_MACHINE = {
    "system": "system",
    "kernel": "kernel",
    "cpu": "processor",
    "cores": "cores",
    "memory_bytes": "memory",
    "virtualisation": "virtualisation",
}


@dataclass(frozen=True, slots=True)
class ProgramFact:
    """A program that took part in a run.

    `owner` is its VPN; "" for a tool. `program` is its name; "" for the program that has the name of its VPN. `hosts`
    names the hosts that had this program; "" if all hosts had the same.
    """

    owner: str
    version: str
    program: str
    path: str
    sha256: str
    hosts: str = ""

    @property
    def name(self) -> str:
        return " ".join(dict.fromkeys(filter(None, (self.owner, self.program))))


@dataclass(frozen=True, slots=True)
class Environment:
    """The recorded facts that a reader needs to repeat a run.

    `command` is one line for a shell; `machine` and `settings` are names with values. `machine` describes the machine
    that all nodes shared, or every host that they ran on.
    """

    command: str
    machine: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    programs: tuple[ProgramFact, ...]

    def plain(self) -> tuple[tuple[str, str], ...]:
        """Return machine, programs and settings as pairs of name and value."""
        programs = (
            (
                fact.name + (f" ({fact.hosts})" if fact.hosts else ""),
                " ".join(filter(None, (fact.version, f"sha256:{fact.sha256}" if fact.sha256 else ""))),
            )
            for fact in self.programs
        )
        return (*self.machine, *programs, *self.settings)


def environment(record: Mapping[str, Any]) -> Environment:
    """Read the content of `environment.json`, of which any part may be missing or null."""
    hosts = mapping(record.get("hosts"))
    apart = {"tunnelmark", "command", "machine", "vpns", "tools", "matrix"}  # the matrix has a table of its own
    if hosts:
        apart |= {"hosts", "inventory", "host_sysctls"}  # each host's are below; the rest is the first node's
    record = {**record, "fingerprint": _without_flags(mapping(record.get("fingerprint")))}
    settings = _flat({key: value for key, value in record.items() if key not in apart})
    if hosts:
        several = host_tables.hosts(record)
        first = next((host for host in several if "node" in host.roles), several[0]).name
        settings = [(name.replace("fingerprint", f"fingerprint of {first}", 1), value) for name, value in settings]
        settings += _settings_of(hosts)
    tools = _tools_of(hosts) if hosts else _tools(mapping(record.get("tools")))
    facts = [("tunnelmark", record.get("tunnelmark")), *(_hosts(record) if hosts else _machine(record))]
    return Environment(
        command=_command(record.get("command")),
        machine=tuple((name, str(value)) for name, value in facts if value not in (None, "", [], {})),
        settings=tuple(settings),
        programs=(*_vpns(mapping(record.get("vpns"))), *tools),
    )


def _machine(record: Mapping[str, Any]) -> list[tuple[str, object]]:
    machine = dict(mapping(record.get("machine")))
    memory = machine.get("memory_bytes")
    if isinstance(memory, (int, float)):
        machine["memory_bytes"] = f"{memory / 2**30:.1f} GiB"
    return [*((title, machine.pop(key, None)) for key, title in _MACHINE.items()), *machine.items()]


def _hosts(record: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return a row for each host: its name, and what ran on it with its hardware, system and network card."""
    return [
        (
            f"host {host.name}",
            ", ".join(filter(None, (host_tables.doing(host), host.words, host.system, host.card))),
        )
        for host in host_tables.hosts(record)
    ]


def _tools_of(hosts: Mapping[str, Any]) -> list[ProgramFact]:
    """Return a row for each tool: one if all hosts have the same, else one for each that differs, with its hosts."""
    found: dict[str, dict[ProgramFact, list[str]]] = {}
    for host, facts in hosts.items():
        for fact in _tools(mapping(mapping(facts).get("tools"))):
            found.setdefault(fact.program, {}).setdefault(fact, []).append(host)
    return [
        fact if names == list(hosts) else replace(fact, hosts=formatting.listed(names))
        for facts in found.values()
        for fact, names in facts.items()
    ]


def _settings_of(hosts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the settings of the hosts: one row where all have the same value, else one for each host."""
    values: dict[str, dict[str, str]] = {}
    for host, facts in hosts.items():
        kept = {key: value for key, value in mapping(facts).items() if key not in ("machine", "tools")}
        for name, value in _flat(kept):
            values.setdefault(name, {})[host] = value
    rows: list[tuple[str, str]] = []
    for name, by_host in values.items():
        if len(by_host) == len(hosts) and len(set(by_host.values())) == 1:
            rows.append((f"all hosts: {name}", next(iter(by_host.values()))))
        else:
            rows += [(f"host {host}: {name}", value) for host, value in by_host.items()]
    return rows


def _command(command: object) -> str:
    if isinstance(command, str):
        return command
    return shlex.join(str(word) for word in command) if isinstance(command, (list, tuple)) else ""


def _vpns(vpns: Mapping[str, Any]) -> list[ProgramFact]:
    """Return a row for each VPN with its version and the program of its name, and one for each further program."""
    found = []
    for name, vpn in vpns.items():
        programs = dict(mapping(mapping(vpn).get("programs")))
        own = mapping(programs.pop(name, {}))
        found.append(_fact(name, own.get("version") or mapping(vpn).get("version"), "", own))
        found += [
            _fact(name, mapping(each).get("version"), program, mapping(each)) for program, each in programs.items()
        ]
    return found


def _tools(tools: Mapping[str, Any]) -> list[ProgramFact]:
    return [_fact("", mapping(details).get("version"), name, mapping(details)) for name, details in tools.items()]


def _fact(owner: str, version: object, program: str, details: Mapping[str, Any]) -> ProgramFact:
    return ProgramFact(
        owner, str(version or ""), program, str(details.get("path") or ""), str(details.get("sha256") or "")
    )


def _without_flags(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fingerprint without the processor's flags, some hundred names; their hash remains."""
    cpu = {key: value for key, value in mapping(fingerprint.get("cpu")).items() if key != "flags"}
    return {**fingerprint, "cpu": cpu} if fingerprint else {}


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{prefix}{name.replace('_', ' ')}: ")
        elif isinstance(value, (list, tuple)):
            rows.append((prefix + name, ", ".join(str(item) for item in value)))
        elif value is not None:
            rows.append((prefix + name, f"{value:.3g}" if isinstance(value, float) else str(value)))
    return rows
