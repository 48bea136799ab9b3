"""Describes the machines of a run: the hosts of an inventory, or the one machine that all nodes shared.

The nodes of one machine may have been in a virtual machine on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tunnelmark.report import formatting

HEAD = ("host", "what ran on it", "processor", "cores", "memory", "kernel", "system", "card of the links")
"""The columns of `rows`."""

_ROLES = {"node": "a node", "middle": "the links"}


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The recorded facts of a host; a text is "" if its fact is not recorded."""

    name: str
    roles: tuple[str, ...]
    cpu: str
    cores: str
    memory: str
    kernel: str
    system: str
    virtual: bool
    card: str = ""

    @property
    def hardware(self) -> str:
        """The hardware in one line: `Intel Xeon, 2 cores, 24 GiB of memory, a virtual machine`."""
        facts = (
            self.cpu,
            f"{self.cores} {'core' if self.cores == '1' else 'cores'}" if self.cores else "",
            f"{self.memory} of memory" if self.memory else "",
            "a virtual machine" if self.virtual else "",
        )
        return ", ".join(fact for fact in facts if fact)

    @property
    def words(self) -> str:
        """The host's hardware and kernel, in words."""
        return ", ".join(filter(None, (self.hardware, f"Linux {self.kernel}" if self.kernel else "")))


def of_machine(name: str, machine: Mapping[str, Any], roles: tuple[str, ...] = (), card: str = "") -> HostFacts:
    """Make the facts of a host from the record of its machine, of which any part may be missing.

    `roles`: those in the inventory: `node` if nodes run on the host, `middle` if links run through it; () if the roles
    are not recorded. `card`: the interface that carried the links, with its MTU; "" if the interface is not recorded.
    """
    memory = machine.get("memory_bytes")
    return HostFacts(
        name,
        roles,
        cpu=str(machine.get("cpu") or ""),
        cores=str(machine.get("cores") or ""),
        memory=f"{memory / 2**30:.0f} GiB" if isinstance(memory, (int, float)) else "",
        kernel=str(machine.get("kernel") or ""),
        system=str(machine.get("system") or ""),
        virtual=machine.get("virtualisation") not in (None, "", "none"),
        card=card,
    )


def hosts(record: Mapping[str, Any]) -> tuple[HostFacts, ...]:
    """Return every host that nodes or links ran on, in the inventory's order; empty if all ran on one machine."""
    named = mapping(record.get("hosts"))
    inventory = mapping(record.get("inventory")).get("hosts")
    known = {each["name"]: each for each in inventory or () if isinstance(each, Mapping) and "name" in each}
    cards = mapping(mapping(record.get("lab")).get("hosts"))
    order = [*(name for name in known if name in named), *(name for name in named if name not in known)]
    found = []
    for name in order:
        card = mapping(cards.get(name))
        words = [str(card.get("interface") or known.get(name, {}).get("interface") or "")]
        words += [f"MTU {card['mtu']}"] if card.get("mtu") else []
        roles = tuple(known.get(name, {}).get("roles", ()))
        facts = mapping(mapping(named[name]).get("machine"))
        found.append(of_machine(name, facts, roles, ", ".join(word for word in words if word)))
    return tuple(found)


def rows(record: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a row for each host, in the columns of `HEAD`; empty if all ran on one machine."""
    return [
        (each.name, doing(each), each.cpu, each.cores, each.memory, each.kernel, each.system, each.card)
        for each in hosts(record)
    ]


def doing(host: HostFacts) -> str:
    """Return what ran on a host, in words: `a node`, `the links`; "" if its roles are not recorded."""
    return formatting.listed([_ROLES.get(role, role) for role in host.roles])


def joined_by(record: Mapping[str, Any]) -> str:
    """Return the kind of the links between the hosts, in the plural; `VXLANs` if it is not recorded."""
    kind = str(mapping(mapping(record.get("inventory")).get("network")).get("kind") or "vxlan")
    return f"{kind.upper()}s"


def where(record: Mapping[str, Any], *, kernel: bool = True) -> str:
    """Say in one line where the nodes of a run were; "" if it is not recorded. `kernel`: whether to name the kernel."""

    def words(host: HostFacts) -> str:
        return host.words if kernel else host.hardware

    if several := hosts(record):
        alike: dict[str, list[str]] = {}
        for each in several:
            alike.setdefault(words(each), []).append(f"{each.name} ({doing(each)})" if each.roles else each.name)
        said = "; ".join(f"{formatting.listed(names)}: {what}" for what, names in alike.items())
        return f"hosts of their own, joined by {joined_by(record)}: {said}"
    if guest := mapping(record.get("guest")):
        clock = (
            f", whose clock counts instructions ({guest['clock']})"
            if guest.get("emulated") and guest.get("clock")
            else ""
        )
        return "network namespaces of a virtual machine" + (f" with Linux {guest.get('kernel', '?')}" if kernel else "") + clock  # fmt: skip
    known = words(of_machine("", mapping(record.get("machine"))))
    return f"network namespaces of one machine: {known}" if known else ""


def mapping(value: object) -> Mapping[str, Any]:
    """Return a part of a record as a mapping; empty if it is missing, null or of another type."""
    return value if isinstance(value, Mapping) else {}
