"""Compares two fingerprints from `environment.json`: which fields differ, and whether it is the same machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tunnelmark.host.fingerprint import Fingerprint

KEY = "fingerprint"
"""The key of the fingerprint in `environment.json`; results of early versions do not have it."""

_BOOT = "boot"

_MHZ = 0.01
"""The share by which the processor's frequency may differ on the same machine.

If the kernel measures the frequency at boot, the result differs each time, by less than a thousandth.
"""

_MEMORY = 0.01
"""The share by which the memory may differ on one machine: the kernel reserves some pages more or less at each boot."""

_TITLES = {"cpu.flags": "CPU flags", "cpu.mhz": "MHz", "command_line": "kernel command line", "hz": "HZ"}

Kinship = Literal["same boot", "other boot", "other machine", "not known"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which two fingerprints differ: its name for people, and both values as shortened text."""

    field: str
    before: str
    now: str

    def __str__(self) -> str:
        return f"{self.field}: {self.before or 'not said'}, now {self.now or 'not said'}"


def plain(found: Fingerprint) -> dict[str, Any]:
    """Return a fingerprint as a dict that can be written as JSON."""
    return asdict(found)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return the fields in which two fingerprints differ.

    The boot is not compared, nor a field that one of them lacks.
    """
    mine, theirs = _flat(before), _flat(now)
    found = []
    for name in mine:
        if name in theirs and name not in (_BOOT, "cpu.flags_hash") and not _alike(name, mine[name], theirs[name]):
            found.append(_difference(name, mine[name], theirs[name]))
    return tuple(found)


def kinship(before: Mapping[str, Any], now: Mapping[str, Any]) -> Kinship:
    """Return whether two environments are of the same boot of a machine, of another boot of it, or of other machines.

    "not known" if one of them has no fingerprint, "other machine" if their fingerprints differ in more than the boot.
    The fingerprints of two machines of one make differ only in the id of the installed system. If that id was cloned
    with an image of the disk, the result is "other boot", although these are two machines.
    """
    mine, theirs = before.get(KEY), now.get(KEY)
    if not mine or not theirs:
        return "not known"
    if differences(mine, theirs):
        return "other machine"
    return "same boot" if mine.get(_BOOT) == theirs.get(_BOOT) else "other boot"


def machines(environments: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return a letter for the machine of each run, by the name of the run.

    Runs on the same machine have the same letter.
    """
    known: list[Mapping[str, Any]] = []
    found = {}
    for run, environment in environments.items():
        alike = (number for number, other in enumerate(known) if same_machine(other, environment))
        number = next(alike, len(known))
        if number == len(known):
            known.append(environment)
        found[run] = _letters(number)
    return found


def same_machine(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two environments are of the same machine, as far as the records show.

    If one of them has no fingerprint, their entries `machine` (kernel, processor, cores, memory) must be equal.
    """
    kin = kinship(one, other)
    return one.get("machine") == other.get("machine") if kin == "not known" else kin != "other machine"


def _letters(number: int) -> str:
    return (_letters(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def name(environment: Mapping[str, Any]) -> str:
    """Return a short description of a machine: processor with family and model, frequency, cores, kernel, hypervisor."""
    found = environment.get(KEY)
    if not found:
        machine = environment.get("machine", {})
        return ", ".join(str(machine[key]) for key in ("cpu", "kernel") if machine.get(key)) or "not recorded"
    cpu = found["cpu"]
    words = [f"{cpu['name']} ({cpu['vendor']} family {cpu['family']} model {cpu['model']} stepping {cpu['stepping']})"]
    words += [f"{cpu['mhz']:.0f} MHz"] if cpu["mhz"] else []
    words += [f"{found['cores']} cores", f"Linux {found['kernel']}"]
    return ", ".join([*words, *([f"under {found['hypervisor']}"] if found["hypervisor"] else [])])


def _difference(name: str, before: Any, now: Any) -> Difference:
    title = _TITLES.get(name, name.replace("cpu.", "CPU ").replace(".", ": ").replace("_", " "))
    if name == "cpu.flags":
        gone, new = sorted(set(before) - set(now)), sorted(set(now) - set(before))
        return Difference(title, f"with {_few(gone)}", f"with {_few(new)}")
    return Difference(title, _short(before), _short(now))


def _alike(name: str, before: Any, now: Any) -> bool:
    close = {"cpu.mhz": _MHZ, "memory": _MEMORY}.get(name)
    if close is not None and before and now:
        return bool(abs(now - before) <= close * before)
    return bool(before == now)


def _flat(found: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in found.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = list(value) if isinstance(value, tuple) else value
    return flat


def _short(value: Any) -> str:
    text = ", ".join(str(each) for each in value) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _few(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "") if names else "none more"
