"""A figure in README or docs that a command can print is what the command prints."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from tunnelmark import registry
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order
from tunnelmark.vpns.anchor import DRIVER as ANCHOR

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "docs" / "demo"
OURS = Files((PACKAGED,))
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50}


def number(word: str) -> int:
    """A number in figures or in words: `216`, `Eight`, `thirty-three`."""
    word = word.lower()
    if word.isdigit():
        return int(word)
    if word in NUMBERS:
        return NUMBERS.index(word)
    tens, _, ones = word.partition("-")
    return TENS[tens] + (NUMBERS.index(ones) if ones else 0)


def figures(document: str, pattern: str) -> list[int]:
    """The figures of the one place in a document that says so."""
    (found,) = re.findall(pattern, " ".join((ROOT / document).read_text().split()))
    return [number(one) for one in (found if isinstance(found, tuple) else (found,))]


def test_the_readme_says_what_the_demo_runs() -> None:
    study = load_study("quick", OURS, registry.catalogue())
    vpns = {arm.vpn for arm in study.arms} - {"direct", ANCHOR.name}
    said = figures("README.md", r"quick study: (\w+) VPNs, (\w+) workloads, (\w+) randomised blocks, (\d+) trials")
    assert said == [len(vpns), len(study.workloads), study.blocks, len(order(study).trials)]


def test_the_changelog_counts_what_there_is() -> None:
    vpns = set(registry.vpns()) - {"direct", ANCHOR.name}
    said = figures("CHANGELOG.md", r"(\d+) VPNs, direct and the anchor, with (\d+) arms in all")
    assert said == [len(vpns), len(registry.arms())]
    assert figures("CHANGELOG.md", r"([A-Z][a-z]+(?:-[a-z]+)?) profiles, joined by") == [len(OURS.names("profile"))]


def test_the_page_about_drivers_says_how_long_they_are() -> None:
    lines = [
        len(inspect.getsource(sys.modules[driver.deploy.__module__]).splitlines())
        for driver in registry.vpns().values()
    ]
    half, longest = figures(
        "docs/add-a-vpn.md", r"Half of those here have fewer than (\d+) lines; .* servers of its own (\d+)\."
    )
    assert median(lines) < half
    assert round(max(lines), -1) == longest


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of README.md and docs/demo, written anew from the published results."""
    root = tmp_path_factory.mktemp("printed")
    shutil.copy2(ROOT / "README.md", root)
    shutil.copytree(DEMO, root / "docs" / "demo")
    results = root / "results"
    shutil.copytree(DEMO / "results", results)
    command = root / "command"
    command.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "from tunnelmark.cli import main; raise SystemExit(main())" "$@"\n'
    )
    command.chmod(0o755)
    done = subprocess.run(
        [ROOT / "scripts" / "readme", results],
        env=os.environ | {"TUNNELMARK_ROOT": str(root), "TUNNELMARK_DEMO": str(command)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return root


@pytest.mark.parametrize("name", ["README.md", "docs/demo/terminal.txt", "docs/demo/report.md"])
def test_the_demo_is_what_the_published_results_print(printed: Path, name: str) -> None:
    assert (printed / name).read_text() == (ROOT / name).read_text(), f"scripts/readme docs/demo/results writes {name}"


def options(name: str) -> list[tuple[str, str]]:
    """The options of a workload and their defaults, as its page has them."""
    page = ROOT / "docs" / "workloads" / f"{name}.md"
    text = page.read_text() if page.exists() else ""
    rows = text.partition("| option | default | |\n|---|---|---|\n")[2].splitlines()
    found = []
    for row in rows:
        if not row.startswith("|"):
            break
        keys, default = (cell.strip() for cell in row.split("|")[1:3])
        found += [(key.strip("`"), default) for key in keys.split(", ")]
    return found


def says(cell: str, default: object) -> bool:
    """Whether a cell has a default, in its own words or as another way to write the same quantity (`0.3 s`, `300 ms`)."""
    if isinstance(default, (list, tuple)):
        return all(says(cell, each) for each in default)
    word = str(default).lower() if isinstance(default, bool) else "none" if default is None else str(default)
    if word in cell:
        return True
    parse = getattr(type(default), "parse", None)
    return parse is not None and any(parse(one) == default for one in re.findall(r"\d+(?:\.\d+)? [A-Za-z%/]+", cell))


@pytest.mark.parametrize("name", [name for name in registry.workloads() if options(name)])
def test_a_workloads_page_has_its_options_with_their_defaults(name: str) -> None:
    fields = registry.workload(name).options.model_fields
    said = dict(options(name))
    assert set(said) == set(fields)
    assert {key: cell for key, cell in said.items() if not says(cell, fields[key].default)} == {}


def test_the_finding_about_hops_has_what_its_command_prints() -> None:
    run = ROOT / "published" / "2026-11-26-2-core-amd-vm-cascade"  # which the page names
    command = [sys.executable, str(ROOT / "bench" / "hop_costs.py"), str(run)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    page = (ROOT / "docs" / "findings" / "hops-of-a-cascade.md").read_text()
    assert printed.strip() in page
    assert f"`published/{run.name}`" in page


def test_the_finding_about_floods_over_a_delay_has_what_its_command_prints() -> None:
    names = ("floods-over-a-delay", "relays-over-a-delay", "floods-of-a-minute", "queue-of-a-delay", "half-the-queue")
    runs = [ROOT / "docs" / "runs" / f"2026-11-26-{name}.csv" for name in names]
    command = [sys.executable, str(ROOT / "bench" / "delay_rows.py"), *map(str, runs)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() in (ROOT / "docs" / "findings" / "floods-over-a-delay.md").read_text()
