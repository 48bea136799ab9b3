"""Runs the command `tunnelmark` as a user does, as a process of its own, and writes small studies for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tunnelmark import former_names
from tunnelmark.host.programs import NAMED_VARIABLE, PACKAGES_VARIABLE
from tunnelmark.lab import emulator
from tunnelmark.linux import cgroups

SMALL = """\
[study]
name = "small"
title = "A small study"
description = "Short trials of a few arms, for tests."
seed = 7
blocks = {blocks}
ready_timeout = "{ready_timeout}"
profiles = ["{profile}"]
topologies = ["pair"]

[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"

{arms}
[[workload]]
workload = "ping"
options = {{ duration = "1 s" }}

{workloads}
"""

_KEPT = {
    "TUNNELMARK_TESTS",
    *(PACKAGES_VARIABLE, former_names.PACKAGES_VARIABLE, NAMED_VARIABLE),
    *(emulator.VARIABLE, former_names.EMULATOR_VARIABLE, cgroups.VARIABLE),
}
"""Whose a process is (`support.host`), and where the machine has programs and a place for labs."""

TCP = '[[workload]]\nworkload = "tcp"\noptions = { duration = "1 s" }\n'


def small_study(
    folder: Path,
    *,
    arms: Sequence[str] = (),
    blocks: int = 1,
    ready_timeout: str = "20 s",
    profile: str = "gigabit",
    tcp: bool = False,
) -> Path:
    """Write a study with the bare link, its twin and these arms; returns its file."""
    file = folder / "small.toml"
    tables = "".join(f'[[arm]]\nname = "{arm}"\n\n' for arm in arms)
    file.write_text(
        SMALL.format(
            blocks=blocks, ready_timeout=ready_timeout, profile=profile, arms=tables, workloads=TCP if tcp else ""
        )
    )
    return file


def command(*arguments: str | Path, path: Path | None = None) -> list[str]:
    """The command line; `path` is put before it as TUNNELMARK_PATH."""
    prefix = ["env", f"TUNNELMARK_PATH={path}"] if path else []
    return [
        *prefix,
        sys.executable,
        "-c",
        "from tunnelmark.cli import main; raise SystemExit(main())",
        *map(str, arguments),
    ]


def run(*arguments: str | Path, path: Path | None = None, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return finished(command(*arguments, path=path), environment(), within=timeout)


def finished(argv: Sequence[str], env: Mapping[str, str], *, within: float) -> subprocess.CompletedProcess[str]:
    """A command that has ended. AssertionError with what it has printed up to then, if that takes longer than `within` seconds."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=within, env=env, check=False)
    except subprocess.TimeoutExpired as late:
        printed = [
            part.decode(errors="replace") if isinstance(part, bytes) else part for part in (late.stdout, late.stderr)
        ]
        said = "\n".join(part for part in printed if part)
        raise AssertionError(f"{' '.join(argv)[:300]} did not end within {within:g} s; it printed:\n{said}") from None


def environment() -> dict[str, str]:
    """Our environment, with the project's code first, also for the command's own children."""
    source = Path(__file__).resolve().parents[2] / "src"
    # Not measured first: what a test asks must not hang on what its machine carries at that moment. Other work is not waited
    # for: on a machine that is never calm that takes minutes of every run.
    ours = {"PYTHONPATH": str(source), "COLUMNS": "120", "TUNNELMARK_MEASURE": "no", "TUNNELMARK_NO_WAIT": "1"}
    return {name: value for name, value in os.environ.items() if not _is_users(name)} | ours


def _is_users(name: str) -> bool:
    """Whether a variable is a wish of who runs the tests, and would change what a command says or does."""
    return name in ("FORCE_COLOR", "NO_COLOR") or (name.startswith("TUNNELMARK_") and name not in _KEPT)


def settled(results: Path) -> list[dict]:
    """The trials in a journal, in order, without attempts that the laboratory spoilt and made again."""
    attempts = journal(results)
    last = {trial["trial"]: place for place, trial in enumerate(attempts)}
    return [trial for place, trial in enumerate(attempts) if place == last[trial["trial"]]]


def complete(attempts: Sequence[dict], planned: Collection[str]) -> None:
    """Every planned trial was attempted, and none again that had its result: only what the laboratory spoilt."""
    had: set[str] = set()
    for each in attempts:
        assert each["trial"] not in had, f"{each['trial']} was made again though it had a result"
        if each["outcome"] != "void" and not each.get("wanting"):
            had.add(each["trial"])
    assert set(planned) <= {each["trial"] for each in attempts}


def planned(results: Path) -> list[str]:
    """The trials of a run's plan."""
    trials: list[str] = json.loads((results / "plan.json").read_text())["trials"]
    return trials


def journal(results: Path) -> list[dict]:
    """The attempts in a journal, in order; a torn last line is left out."""
    content = (results / "journal.jsonl").read_text()
    lines = content[: content.rfind("\n") + 1].splitlines()
    return [entry["trial"] for entry in map(json.loads, lines) if "trial" in entry]
