"""What a run was asked, piece by piece: each arm, link, topology and workload as one value, so that runs can be compared.

What only says how often, or in which words, is left out: title, description, seed, number of blocks. So further blocks, and the
same study on another day or machine, have the same hash.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tunnelmark.plan.auto import FILE as FIXED
from tunnelmark.plan.design import ALL
from tunnelmark.plan.files import FOLDERS, Kind
from tunnelmark.plan.profiles import JOIN
from tunnelmark.record import arm_programs
from tunnelmark.record.arm_programs import VERSION
from tunnelmark.record.results import INPUTS, Results

Piece = tuple[str, str]
"""Kind and name: `arm tinc`, `link gigabit`, `topology pair`, `workload tcp`."""

_WORDS = ("title", "source", "description")


def pieces(found: Results) -> Mapping[Piece, Mapping[str, Any]]:
    """Every arm, link, topology and workload of a run, each with all that its folder records of what decides results, such as the version of a VPN."""
    plan, inputs = found.plan, found.path / INPUTS
    named = {table.get("name"): table for table in _file(inputs, "study", plan.study).get("arm", [])}
    fixed = _toml(inputs / FIXED)
    made: dict[Piece, Mapping[str, Any]] = {}
    for arm in plan.arms:
        version = arm_programs.version(found.environment, arm)
        made["arm", arm.name] = {**named.get(arm.name, {}), **_plain(arm), VERSION: version}
    for profile in plan.profiles:
        stated = [_file(inputs, "profile", part) for part in profile.name.split(JOIN)]
        made["link", profile.name] = {**_plain(profile), "stated": stated, "fixed": fixed.get(profile.name)}
    for topology in plan.topologies:
        own, *_ = topology.name.split(JOIN)
        made["topology", topology.name] = {**_plain(topology), "stated": _file(inputs, "topology", own)}
    for use in plan.workloads:
        made["workload", use.name] = {**_plain(use), "watch": list(plan.watch), "smoke": plan.smoke}
    return {piece: json.loads(json.dumps(_quiet(value))) for piece, value in made.items()}


def plan_hash(found: Results) -> str:
    """One short word for all that was asked; the versions of programs are not part of it."""
    asked = {
        " ".join(piece): {k: v for k, v in value.items() if k != VERSION} for piece, value in pieces(found).items()
    }
    if found.plan.design != ALL:
        asked["design"] = asdict(found.plan.design)
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]


def contrast(mine: Mapping[Piece, Mapping[str, Any]], theirs: Mapping[Piece, Mapping[str, Any]]) -> Mapping[Piece, str]:
    """The pieces that two runs do not share, each with the reason, from the view of the first."""
    said: dict[Piece, str] = {}
    for piece in {**mine, **theirs}:
        if piece not in theirs:
            said[piece] = "is not there"
        elif piece not in mine:
            said[piece] = "is there only"
        elif mine[piece] != theirs[piece]:
            keys = [key for key in {**mine[piece], **theirs[piece]} if mine[piece].get(key) != theirs[piece].get(key)]
            said[piece] = "; ".join(
                f"{key.replace('_', ' ')} {_short(theirs[piece].get(key))}, not {_short(mine[piece].get(key))}"
                for key in keys
            )
    return said


def _plain(info: Any) -> dict[str, Any]:
    return {key: value for key, value in asdict(info).items() if key not in _WORDS}


def _quiet(value: Any) -> Any:
    """Without what is only words for people, at any depth."""
    if isinstance(value, Mapping):
        return {key: _quiet(each) for key, each in value.items() if key not in _WORDS}
    return [_quiet(each) for each in value] if isinstance(value, (list, tuple)) else value


def _file(inputs: Path, kind: Kind, name: str) -> dict[str, Any]:
    return _toml(inputs / FOLDERS[kind] / f"{name}.toml")


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return {}


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 50 else f"{text[:47]}..."
