"""A results folder with a report of several conditions, and a headless Chromium that opens it.

Chromium is the system's (`apt-get install chromium-headless-shell`, or a full `chromium`), driven from Python by Playwright, which
never fetches a browser of its own. Without either the tests are skipped and say why. A page is opened as a user opens it: as a
file, with no server; each test gets a fresh profile. What a page says on its console, and all that it asks for, is kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.record import store
from tunnelmark.report import html
from unit import stored
from unit.builders import PING, PROFILE, TCP, UDP
from unit.conditions import STUDY, Factors, results

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    "--no-sandbox",  # tests may run as root, and the page is our own
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LIMIT = 15_000  # milliseconds in which a page does what is asked, also on a busy machine


@dataclass
class Opened:
    """A page with what it said and asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Folder:
    """A results folder that holds its report, and what the store in it says."""

    path: Path
    analysis: Analysis

    def address(self, state: str = "", file: str = "report.html") -> str:
        return f"{(self.path / file).as_uri()}{state}"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Five arms, three workloads, three conditions; one arm fails twice, and one does better on one link and worse on another."""
    profiles = tuple(
        replace(PROFILE, name=name, title=title)
        for name, title in (("gigabit", "1 Gbit/s"), ("lossy", "a lossy link"), ("lte", "LTE, with jitter"))
    )
    study = replace(STUDY, workloads=(TCP, PING, UDP), profiles=profiles, series=True)
    factors: Factors = {("tinc", "lossy", None): 0.2, ("nebula", "lte", None): 0.3}
    found = results(study, factors, frozenset({("openvpn", "lossy", 2), ("openvpn", "lossy", 5)}))
    path = stored.write(found, tmp_path_factory.mktemp("browser") / "run", {"study.toml": "made"})
    for row in found.trials:
        for name in row.raw:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(row.trial)
    analysis = judge(store.load(path))
    (path / "report.html").write_text(html.render(analysis), encoding="utf-8")
    return Folder(path, analysis)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs Playwright (make setup)")
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("needs a Chromium: apt-get install chromium-headless-shell")
    # Playwright's event loop runs until the end of the process, and no other test there could have one.
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("needs a process of its own: pytest tests/browser, as `make test` runs it")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=OPTIONS, env=dict(os.environ))
        yield started
        started.close()


@pytest.fixture
def opens(browser: Any, folder: Folder) -> Iterator[Callable[..., Opened]]:
    """Opens the report in a state, in a window of a size; each in a fresh profile."""
    contexts = []

    def opened(
        state: str = "", width: int = 1600, height: int = 1000, file: str = "report.html", **options: Any
    ) -> Opened:
        context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce", **options)
        context.set_default_timeout(LIMIT)
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.said.append(message.text))
        found.page.on("pageerror", lambda error: found.said.append(str(error)))
        context.on("request", lambda request: found.asked.append(request.url))
        found.page.goto(folder.address(state, file))
        return found

    yield opened
    for context in contexts:
        context.close()
