"""The environment of a run as rows to print; whatever a record lacks is left out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ProgramFact:
    """A program that took part: `owner` is its VPN, or empty for a tool."""

    owner: str
    version: str
    program: str
    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Environment:
    """What a reader needs to repeat a run; `command` is one line for a shell."""

    command: str
    machine: tuple[tuple[str, str], ...]
    lab: tuple[tuple[str, str], ...]
    programs: tuple[ProgramFact, ...]

    def plain(self) -> tuple[tuple[str, str], ...]:
        """Everything as names and values."""
        programs = (
            (
                f"{fact.owner}: {fact.program}" if fact.owner and fact.owner != fact.program else fact.program,
                " ".join(filter(None, [fact.version, f"sha256:{fact.sha256}" if fact.sha256 else ""])),
            )
            for fact in self.programs
        )
        return (*self.machine, *self.lab, *programs)


def environment(record: Mapping[str, Any]) -> Environment:
    """Reads `environment.json`, any part of which may be missing or null."""
    machine = _map(record.get("machine"))
    memory = machine.get("memory_bytes")
    facts = {
        "tunnelmark": record.get("tunnelmark"),
        "system": machine.get("system"),
        "kernel": machine.get("kernel"),
        "processor": machine.get("cpu"),
        "cores": machine.get("cores"),
        "memory": f"{memory / 2**30:.1f} GiB" if isinstance(memory, (int, float)) else None,
    }
    lab = _map(record.get("lab"))
    return Environment(
        command=_command(record.get("command")),
        machine=tuple((name, str(value)) for name, value in facts.items() if value not in (None, "")),
        lab=tuple(_flat(lab)) + tuple(_flat({"load": record.get("load")} if record.get("load") else {})),
        programs=(*_vpns(_map(record.get("vpns"))), *_tools(_map(record.get("tools")))),
    )


def _command(command: object) -> str:
    if isinstance(command, str):
        return command
    return shlex.join(str(word) for word in command) if isinstance(command, (list, tuple)) else ""


def _vpns(vpns: Mapping[str, Any]) -> list[ProgramFact]:
    facts = []
    for name, vpn in vpns.items():
        version = str(_map(vpn).get("version") or "")
        programs = _map(_map(vpn).get("programs"))
        for program, details in programs.items():
            found = _map(details)
            facts.append(
                ProgramFact(name, version, program, str(found.get("path") or ""), str(found.get("sha256") or ""))
            )
        if not programs:
            facts.append(ProgramFact(name, version, "", "", ""))
    return facts


def _tools(tools: Mapping[str, Any]) -> list[ProgramFact]:
    return [
        ProgramFact(
            "",
            str(_map(details).get("version") or ""),
            name,
            str(_map(details).get("path") or ""),
            str(_map(details).get("sha256") or ""),
        )
        for name, details in tools.items()
    ]


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{prefix}{name} ")
        elif isinstance(value, (list, tuple)):
            rows.append((prefix + name, ", ".join(str(item) for item in value)))
        elif value is not None:
            rows.append((prefix + name, str(value)))
    return rows


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
