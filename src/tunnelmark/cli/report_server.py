"""Serves the reports of a folder of runs to a browser on this machine, also while a study is being measured.

It listens on the loopback address, and answers a request only if its Host header names this address or localhost.
(Another site's page could otherwise send a browser here by a name of its own that resolves to this address.) Pages
are made at the lowest priority, and those of a running study only after each block, because making a page takes a
second or two of a core that trials also use.
"""

from __future__ import annotations

import json
import mimetypes
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote, unquote, urlsplit

from tunnelmark.errors import TunnelmarkError, UsageError
from tunnelmark.record import run_folders, store
from tunnelmark.record.results import JOURNAL, Results

ADDRESS = "127.0.0.1"
AGAIN = 30
"""Seconds after which a browser asks again for the page of a run that still goes on."""

_GOES_ON = 900.0
"""A run that is not finished counts as stopped if its journal has not changed for so many seconds."""

_PAGES = ("", "report.html")


@dataclass
class Served:
    """One run whose report is served.

    `page`: the report as HTML; "" until a browser asks for it. `made_of`: the state of the run when the page was made:
    the number of the last block, and the number of attempts if the run had finished, else -1. `read`: the results as
    they were last read, after the time of change (ns) and the size (bytes) that journal.jsonl had then; None if they
    have not been read.
    """

    folder: Path
    page: str = ""
    made_of: tuple[int, int] = (-1, -1)
    read: tuple[tuple[int, int], Results] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def render(self) -> tuple[str, bool]:
        """Return the page, and whether the run goes on.

        The page is made again if a first attempt of a further block has ended, or if the run has.
        """
        with self.lock:
            found = self._load()
            done = max((row.block for row in found.trials), default=0)
            now = (done, len(found.trials) if found.finished else -1)
            if now != self.made_of:
                from tunnelmark import analyse
                from tunnelmark.report import html

                self.page, self.made_of = html.render(analyse.judge(found)), now
            return self.page, not found.finished and self._changed() < _GOES_ON

    def state(self) -> Mapping[str, object]:
        """Return the run's progress, with the keys "title", "study", "started", "done", "planned" and "state".

        "started": seconds since the Unix epoch; None if unknown. "done", "planned": numbers of trials. "state":
        "finished", "goes on", or "stopped" (the run is not finished, and its journal has not changed for 15 minutes).
        """
        found = self._load()
        done = len({row.trial for row in found.trials} & set(found.plan.trials))
        state = "finished" if found.finished else "goes on" if self._changed() < _GOES_ON else "stopped"
        return {
            "title": found.plan.title,
            "study": found.plan.study,
            "started": found.sessions[0].started if found.sessions else None,
            "done": done,
            "planned": len(found.plan.trials),
            "state": state,
        }

    def line(self) -> Mapping[str, str]:
        """Return a row of the list of runs, with the keys "title", "began" and "state", all texts for people.

        "began": date and local time, or "". "state": such as "goes on: 12 of 40 trials".
        """
        found = self.state()
        started = found["started"]
        began = time.strftime("%Y-%m-%d %H:%M", time.localtime(started)) if isinstance(started, float) else ""
        return {
            "title": str(found["title"]),
            "began": began,
            "state": f"{found['state']}: {found['done']} of {found['planned']} trials",
        }

    def _load(self) -> Results:
        """Return the results; they are read again if the journal has changed since."""
        try:
            journal = (self.folder / JOURNAL).stat()
        except OSError:
            return store.load(self.folder)  # which says what is wrong with the folder
        mark = (journal.st_mtime_ns, journal.st_size)
        if self.read is None or self.read[0] != mark:
            self.read = (mark, store.load(self.folder))
        return self.read[1]

    def _changed(self) -> float:
        """Return the seconds since the journal was last written."""
        return time.time() - (self.folder / JOURNAL).stat().st_mtime


class ReportServer(ThreadingHTTPServer):
    """Serves the reports of the runs in `sources` (folders). `url`: its address for a browser. `port` 0: any free port.

    UsageError if the port cannot be used, or if `sources` hold no results.
    """

    daemon_threads = True

    def __init__(self, sources: list[Path], port: int) -> None:
        self.sources = sources
        self.runs: dict[str, Served] = {}
        self.look()
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise UsageError(
                f"port {port} cannot be used: {error.strerror}", hint="name another with --port, or none"
            ) from error
        self.url = f"http://{ADDRESS}:{self.server_port}/"

    def look(self) -> None:
        """Find the runs that `sources` have now. UsageError if there are none now, and there were none before."""
        names = run_folders.folders(self.sources)
        if not names and not self.runs:
            raise UsageError(
                f"there are no results in {' or '.join(map(str, self.sources))}",
                hint="name the folder of a run, or of several",
            )
        self.runs = {name: self.runs.get(name) or Served(folder) for name, folder in names.items()}


class _Handler(BaseHTTPRequestHandler):
    """Answers GET: the list of runs, a run's page, its state as JSON, and files of its folder."""

    server: ReportServer
    protocol_version = "HTTP/1.1"
    server_version = "tunnelmark"

    _TEXT: ClassVar[frozenset[str]] = frozenset({".log", ".txt", ".toml", ".jsonl", ".md", ".err", ".out", ""})

    def do_GET(self) -> None:
        """Answer a request; an error of this project becomes a page with its hint."""
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host not in (ADDRESS, "localhost"):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"this server answers requests for localhost alone\n")
            return
        try:
            self._answer(unquote(urlsplit(self.path).path).lstrip("/"))
        except TunnelmarkError as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", f"{error.message}\n{error.hint}\n".encode())

    def _answer(self, path: str) -> None:
        if path == "":
            self.server.look()
            self._send(HTTPStatus.OK, "text/html", _index(self.server.runs).encode())
            return
        name = next((each for each in self.server.runs if path == each or path.startswith(f"{each}/")), None)
        if name is None:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is no such run; / lists them\n")
            return
        run, inside = self.server.runs[name], path.removeprefix(name)
        if not inside:  # links in the page are relative to its folder
            self._send(HTTPStatus.MOVED_PERMANENTLY, "text/plain", b"", {"Location": f"/{quote(name)}/"})
        elif inside.removeprefix("/") in _PAGES:
            page, goes_on = run.render()
            self._send(HTTPStatus.OK, "text/html", page.encode(), {"Refresh": str(AGAIN)} if goes_on else {})
        elif inside == "/state":
            self._send(HTTPStatus.OK, "application/json", json.dumps(run.state()).encode())
        else:
            self._file(run.folder, inside.removeprefix("/"))

    def _file(self, folder: Path, inside: str) -> None:
        """Send a file of a results folder, or the list of files in a subfolder; paths outside are not found."""
        root, wanted = folder.resolve(), (folder / inside).resolve()
        if not wanted.is_relative_to(root) or not wanted.exists():
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is no such file in this run\n")
        elif wanted.is_dir():
            self._send(HTTPStatus.OK, "text/html", _listing(wanted, inside).encode())
        else:
            kind = "text/plain" if wanted.suffix in self._TEXT else mimetypes.guess_type(wanted.name)[0] or "text/plain"
            self._send(HTTPStatus.OK, kind, wanted.read_bytes())

    def _send(self, status: HTTPStatus, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        text = kind.startswith("text/") or kind.endswith("json")
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the base)
        """Print nothing: requests are not logged."""


def serve(sources: list[Path], port: int, said: Callable[[str], object]) -> None:
    """Serve until Ctrl-C; `said` gets the address once requests are answered."""
    with ReportServer(sources, port) as server:
        os.nice(19)
        said(server.url)
        server.serve_forever()


def _index(runs: Mapping[str, Served]) -> str:
    from tunnelmark.report.html import template

    rows = []
    for name, run in runs.items():
        row = {"name": name, "link": f"/{name}/", "title": "", "began": "", "state": "", "error": ""}
        try:
            row |= run.line()
        except TunnelmarkError as error:
            row["error"] = error.message
        rows.append(row)
    return template("runs.html.j2").render(title="Runs", runs=rows, files=())


def _listing(folder: Path, title: str) -> str:
    from tunnelmark.report.html import template

    names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in folder.iterdir())
    return template("runs.html.j2").render(title=title, runs=(), files=names)
