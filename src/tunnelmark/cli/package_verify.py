"""Runs the contract suite on arms for `packages verify`, and prints a table of the results."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Literal

from rich.console import Console
from rich.text import Text

import tunnelmark
from tunnelmark.cli.output import as_json, table
from tunnelmark.cli.retry_options import NO_WAIT
from tunnelmark.errors import MissingPart
from tunnelmark.host import privileges
from tunnelmark.host.programs import Requirement, part_version
from tunnelmark.packages.install import cache
from tunnelmark.packages.status import absent, recipe_for
from tunnelmark.report.formatting import scale
from tunnelmark.units import clock

_NAMED = 2  # failed tests that the table names; the log has all

VerifyResult = Literal["verified", "failed", "skipped"]

_STYLES = {"verified": "green", "failed": "bold red", "skipped": "yellow"}


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of one arm: how many tests passed, failed and were skipped, in how many seconds, and a note.

    `first_packet`: seconds from the start of its daemons until every node of a mesh of three had answered every other;
    None if no test recorded it.
    """

    arm: str
    result: VerifyResult
    version: str = ""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    first_packet: float | None = None
    note: str = ""


def require() -> None:
    """Raise MissingPart if the user is not root, or if pytest or the checkout with the contract suite is missing."""
    _suite()
    privileges.require("the contract suite makes labs")


def verify(arms: Mapping[str, Requirement], console: Console, jobs: int, json_: bool) -> int:
    """Run the contract suite on arms, `jobs` at once, and print the results as a table, or as JSON if `json_`.

    Return the exit code: 1 if an arm failed, else 0.
    """
    suite, suites = _suite(), _Suites()
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(_one, name, part, suite, suites) for name, part in arms.items()]
        try:
            for place, done in enumerate(as_completed(running), start=1):
                console.print(_line(done.result(), f"{place:>{len(str(len(arms)))}} of {len(arms)}"), soft_wrap=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            suites.kill()
            raise
    verdicts = [one.result() for one in running]
    if json_:
        as_json([asdict(verdict) for verdict in verdicts])
    else:
        console.print()
        table(
            ("arm", "result", "version", "tests", "took", "first packet", ""), [_row(verdict) for verdict in verdicts]
        )
        counts = {result: sum(one.result == result for one in verdicts) for result in ("verified", "failed", "skipped")}
        console.print("\n" + ", ".join(f"{number} {result}" for result, number in counts.items()))
    return int(any(verdict.result == "failed" for verdict in verdicts))


class _Suites:
    """The suites that run now. Ctrl-C does not reach them, since pytest would take its labs down one by one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._over = False

    def run(self, argv: Sequence[str], top: Path, output: IO[bytes]) -> int:
        """Run one suite to its end, and return its exit code; -9 without running it, after `kill`.

        `argv`: the command line. `top`: the checkout, in which it runs. `output`: an open file for all of its output.
        """
        with self._lock:
            if self._over:
                return -signal.SIGKILL
            process = subprocess.Popen(
                argv,
                cwd=top,
                env=os.environ | {NO_WAIT: "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            return process.wait()
        finally:
            with self._lock:
                self._running.discard(process)

    def kill(self) -> None:
        """Kill all suites and the processes that they started; the kernel removes their labs with them."""
        with self._lock:
            self._over = True
            for process in self._running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def _suite() -> Path:
    """Return the checkout with the contract suite. MissingPart if only the package is installed, or without pytest."""
    top = Path(tunnelmark.__file__).resolve().parents[2]
    if not (top / "tests" / "contract" / "test_vpns.py").is_file():
        raise MissingPart(
            "the contract suite is part of the checkout, and this is the installed package alone",
            hint="clone the project, run `make setup` there, and then .venv/bin/tunnelmark packages verify",
        )
    if importlib.util.find_spec("pytest") is None:
        raise MissingPart(
            "the contract suite needs pytest", hint="run `make setup` in the checkout, and its .venv/bin/tunnelmark"
        )
    return top


def _one(name: str, part: Requirement, top: Path, suites: _Suites) -> VerifyReport:
    try:
        version = part_version(part)
    except MissingPart as missing:
        recipe = recipe_for(part)
        return VerifyReport(
            name, "skipped", note=absent(part, recipe, missing) if recipe else f"{missing}; {missing.hint}"
        )
    log = cache() / "logs" / f"verify-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tunnelmark-verify-") as folder, log.open("wb") as output:
        report = Path(folder, "report.xml")
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "tests/contract",
            "--arm",
            name,
            f"--junitxml={report}",
            "-o",
            "junit_family=xunit1",
        ]
        began = time.monotonic()
        code = suites.run(argv, top, output)
        seconds = time.monotonic() - began
        if not report.is_file():
            return VerifyReport(name, "failed", version, seconds=seconds, note=f"pytest ended with code {code}: {log}")
        cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314  # written by our own pytest
    failed = [one.get("name", "") for one in cases if one.find("failure") is not None or one.find("error") is not None]
    skipped = sum(one.find("skipped") is not None for one in cases)
    passed = len(cases) - len(failed) - skipped
    named = ", ".join(name.partition("[")[0] for name in failed[:_NAMED]) + (", ..." if len(failed) > _NAMED else "")
    note = f"{named}: {_reason(cases)}; {log}" if failed else ""
    if not failed and not passed:
        note = f"no test ran: {log}"
    return VerifyReport(name, "verified" if passed and not failed and code == 0 else "failed", version, passed, len(failed),
                   skipped, seconds, _property(cases, "first_packet"), note)  # fmt: skip


def _reason(cases: Sequence[ElementTree.Element]) -> str:
    """Return the message of the first failed test, without the error's class and pytest's words on a fixture."""
    elements = (element for case in cases for kind in ("failure", "error") for element in case.findall(kind))
    said = next((element.get("message", "") for element in elements), "")
    line = said.removeprefix('failed on setup with "').split("\n")[0].rstrip('"')
    return re.sub(r"^(\w+\.)+\w+: ", "", line)


def _property(cases: Sequence[ElementTree.Element], name: str) -> float | None:
    """Return the number that a test recorded under a name; None if no test did."""
    found = (one.get("value", "") for case in cases for one in case.iter("property") if one.get("name") == name)
    return next((float(value) for value in found), None)


def _first_packet(verdict: VerifyReport) -> str:
    return "-" if verdict.first_packet is None else scale("s", [verdict.first_packet]).value(verdict.first_packet)


def _line(verdict: VerifyReport, place: str) -> Text:
    took = f" in {clock(verdict.seconds)}" if verdict.seconds else ""
    first = f", first packet after {_first_packet(verdict)}" if verdict.first_packet is not None else ""
    return Text.assemble(f"  {place}  {verdict.arm:<24} ", (verdict.result, _STYLES[verdict.result]), took, first)


def _row(verdict: VerifyReport) -> tuple[str | Text, ...]:
    tests = f"{verdict.passed} of {verdict.passed + verdict.failed}" if verdict.passed or verdict.failed else "-"
    if verdict.skipped:
        tests += f", {verdict.skipped} not asked"
    return (
        verdict.arm,
        Text(verdict.result, style=_STYLES[verdict.result]),
        verdict.version or "-",
        tests,
        clock(verdict.seconds) if verdict.seconds else "-",
        _first_packet(verdict),
        verdict.note,
    )
