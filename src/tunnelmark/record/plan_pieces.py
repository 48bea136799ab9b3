"""Describes what a run was asked to measure as pieces (arms, links, topologies, workloads) that can be compared.

Titles, sources and descriptions, the seed and the number of blocks are left out. So the hash of the pieces
(`plan_hash`) is the same for a study with more blocks, on another day, or on another machine.
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
from tunnelmark.plan.files import FOLDERS, FileKind
from tunnelmark.plan.profiles import JOIN
from tunnelmark.record import arm_programs
from tunnelmark.record.arm_programs import VERSION
from tunnelmark.record.results import INPUTS, Results

Piece = tuple[str, str]
"""The kind and the name of a piece, such as `arm tinc`, `link gigabit`, `topology pair`, `workload tcp`."""

_WORDS = ("title", "source", "description")


def pieces(found: Results) -> Mapping[Piece, Mapping[str, Any]]:
    """Return every piece of a run, with all recorded properties that can change results, such as a VPN's version."""
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
    """Return a hash (12 hex digits) of all that a run was asked to measure, without the versions of programs."""
    asked = {
        " ".join(piece): {k: v for k, v in value.items() if k != VERSION} for piece, value in pieces(found).items()
    }
    if found.plan.design != ALL:
        asked["design"] = asdict(found.plan.design)
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]


def contrast(mine: Mapping[Piece, Mapping[str, Any]], theirs: Mapping[Piece, Mapping[str, Any]]) -> Mapping[Piece, str]:
    """Return the pieces in which two runs differ, each with the difference in words, as seen from the first run."""
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
    """Return a value without the keys that hold only texts for people, at any depth."""
    if isinstance(value, Mapping):
        return {key: _quiet(each) for key, each in value.items() if key not in _WORDS}
    return [_quiet(each) for each in value] if isinstance(value, (list, tuple)) else value


def _file(inputs: Path, kind: FileKind, name: str) -> dict[str, Any]:
    return _toml(inputs / FOLDERS[kind] / f"{name}.toml")


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return {}


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 50 else f"{text[:47]}..."
