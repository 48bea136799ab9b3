"""Blocks as workers send them, of a run that is made up: for folders that blocks are gathered in."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from tunnelmark.record.link_check import LinkCheck
from unit.builders import TCP, Study

STUDY = Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=8)


def block(number: int, machine: str = "m1") -> dict[str, Any]:
    """A block of `STUDY` as a worker sends it: its trials, and one look at its link, in whose raw output is the block's number."""
    whole = STUDY.results()
    rows = [row for row in whole.trials if row.block == number]
    plan = replace(whole.plan, trials=tuple(row.trial for row in rows))
    look = "link.before.gigabit.pair.1"
    files = (f"raw/{look}/out",)
    check = LinkCheck("gigabit", "pair", "before", rows[0].started, 1.0, "verified", "as stated", (), raw=files)
    journal = [
        {"begun": rows[0].started, "boot": machine},
        {"link": asdict(check)},
        *({"trial": asdict(row)} for row in rows),
        {"wall": 1.0},
    ]
    return {
        "machine": machine,
        "number": number,
        "plan": json.dumps(asdict(plan)),
        "environment": json.dumps(dict(whole.environment)),
        "journal": [json.dumps(entry) for entry in journal],
        "raw": _packed({**{f"{row.trial}/out": b"output" for row in rows}, f"{look}/out": f"look {number}".encode()}),
    }


def _packed(files: Mapping[str, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return held.getvalue()
