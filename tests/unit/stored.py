"""Writes `Results` as a run writes them: plan, environment and inputs as files, trials through the journal."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from tunnelmark.record import results, store
from tunnelmark.record.journal import Journal
from tunnelmark.record.results import Results


def write(found: Results, folder: Path, inputs: dict[str, str] | None = None) -> Path:
    """Have a folder hold these results; `inputs` are plan files by their place."""
    folder.mkdir(parents=True)
    store.write_plan(folder, found.plan)
    (folder / results.ENVIRONMENT).write_text(json.dumps(dict(found.environment)))
    for place, text in (inputs or {}).items():
        file = folder / results.INPUTS / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with Journal(folder / results.JOURNAL) as journal:
        for session in found.sessions:
            journal.append({"begun": session.started, "boot": session.boot})
            for row in found.trials:
                journal.append({"trial": asdict(row)})
            if session.wall is not None:
                journal.append({"wall": session.wall})
    return folder
