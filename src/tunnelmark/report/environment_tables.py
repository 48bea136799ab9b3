"""The environment of a run as rows to print; whatever a record lacks is left out, whatever it adds is shown."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    """A program that took part; `owner` is its VPN, empty for a tool."""

    owner: str
    version: str
    program: str
    path: str
    sha256: str

    @property
    def name(self) -> str:
        return " ".join(dict.fromkeys(filter(None, (self.owner, self.program))))


@dataclass(frozen=True, slots=True)
class Environment:
    """What a reader needs to repeat a run: `command` is one line for a shell, the rest are names with values."""

    command: str
    machine: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    programs: tuple[ProgramFact, ...]

    def plain(self) -> tuple[tuple[str, str], ...]:
        """Everything as names and values."""
        programs = (
            (fact.name, " ".join(filter(None, (fact.version, f"sha256:{fact.sha256}" if fact.sha256 else ""))))
            for fact in self.programs
        )
        return (*self.machine, *programs, *self.settings)


def environment(record: Mapping[str, Any]) -> Environment:
    """Reads `environment.json`, any part of which may be missing or null."""
    machine = dict(mapping(record.get("machine")))
    memory = machine.get("memory_bytes")
    if isinstance(memory, (int, float)):
        machine["memory_bytes"] = f"{memory / 2**30:.1f} GiB"
    known = [(title, machine.pop(key, None)) for key, title in _MACHINE.items()]
    facts = [("tunnelmark", record.get("tunnelmark")), *known, *machine.items()]
    apart = ("tunnelmark", "command", "machine", "vpns", "tools", "matrix")  # the matrix has a table of its own
    record = {**record, "fingerprint": _without_flags(mapping(record.get("fingerprint")))}
    return Environment(
        command=_command(record.get("command")),
        machine=tuple((name, str(value)) for name, value in facts if value not in (None, "", [], {})),
        settings=tuple(_flat({key: value for key, value in record.items() if key not in apart})),
        programs=(*_vpns(mapping(record.get("vpns"))), *_tools(mapping(record.get("tools")))),
    )


def _command(command: object) -> str:
    if isinstance(command, str):
        return command
    return shlex.join(str(word) for word in command) if isinstance(command, (list, tuple)) else ""


def _vpns(vpns: Mapping[str, Any]) -> list[ProgramFact]:
    return [
        _fact(name, mapping(vpn).get("version"), program, mapping(details))
        for name, vpn in vpns.items()
        for program, details in (mapping(mapping(vpn).get("programs")) or {"": {}}).items()
    ]


def _tools(tools: Mapping[str, Any]) -> list[ProgramFact]:
    return [_fact("", mapping(details).get("version"), name, mapping(details)) for name, details in tools.items()]


def _fact(owner: str, version: object, program: str, details: Mapping[str, Any]) -> ProgramFact:
    return ProgramFact(
        owner, str(version or ""), program, str(details.get("path") or ""), str(details.get("sha256") or "")
    )


def _without_flags(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """A hundred names of what a processor can do are for programs; their hash is shown."""
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


def mapping(value: object) -> Mapping[str, Any]:
    """A part of a record, which may be missing or null."""
    return value if isinstance(value, Mapping) else {}
