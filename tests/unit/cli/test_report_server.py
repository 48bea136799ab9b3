"""`report --serve`: reports, raw files and the state of runs for a browser on this machine, and nothing else."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tunnelmark.cli import main
from tunnelmark.cli.report_server import ReportServer
from tunnelmark.record.results import JOURNAL
from unit.builders import TCP, Study
from unit.stored import write

RUN = Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=3)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[ReportServer, Path]]:
    folder = tmp_path / "results"
    whole = write(RUN.results(), folder / "whole")
    (whole / "raw" / "001.tinc").mkdir(parents=True)
    (whole / "raw" / "001.tinc" / "daemon.log").write_text("<script>started</script>")
    write(replace(RUN, stop_after=3).results(), folder / "begun")
    (tmp_path / "secret").write_text("not to be seen")
    (whole / "link").symlink_to(tmp_path / "secret")
    server = ReportServer([folder], 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server, folder
    server.shutdown()
    thread.join()
    server.server_close()


def get(server: ReportServer, path: str, host: str | None = None) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read().decode()
    connection.close()
    return found


def test_the_list_has_every_run_with_its_state(served: tuple[ReportServer, Path]) -> None:
    status, _, page = get(served[0], "/")
    assert status == 200
    assert '<a href="/whole/">whole</a>' in page and "finished: 6 of 6 trials" in page
    assert '<a href="/begun/">begun</a>' in page and "goes on: 3 of 6 trials" in page


def test_a_report_is_served_and_asked_for_again_while_its_run_goes_on(served: tuple[ReportServer, Path]) -> None:
    status, headers, page = get(served[0], "/whole/")
    assert status == 200 and RUN.results().plan.title in page and "Refresh" not in headers
    assert get(served[0], "/whole/report.html")[2] == page
    assert get(served[0], "/begun/")[1]["Refresh"] == "30"
    stopped = time.time() - 3600
    os.utime(served[1] / "begun" / JOURNAL, (stopped, stopped))
    assert "Refresh" not in get(served[0], "/begun/")[1]
    assert "stopped: 3 of 6 trials" in get(served[0], "/")[2]


def test_the_page_is_made_again_when_a_block_has_ended_and_not_before(served: tuple[ReportServer, Path]) -> None:
    server, folder = served
    get(server, "/begun/")
    made = server.runs["begun"].made_of
    rows = RUN.results().trials
    lines = (folder / "whole" / JOURNAL).read_text().splitlines()
    trials = [line for line in lines if '"trial"' in line]
    same = next(line for row, line in zip(rows, trials, strict=True) if row.block == 2 and rows.index(row) == 3)
    with (folder / "begun" / JOURNAL).open("a") as journal:
        journal.write(f"{same}\n")
    get(server, "/begun/")
    assert server.runs["begun"].made_of == made
    with (folder / "begun" / JOURNAL).open("a") as journal:
        journal.writelines(f"{line}\n" for line in trials[4:])
    get(server, "/begun/")
    assert server.runs["begun"].made_of != made
    assert json.loads(get(server, "/begun/state")[2])["state"] == "finished"


def test_a_run_that_begins_later_is_listed(served: tuple[ReportServer, Path]) -> None:
    write(RUN.results(), served[1] / "later")
    assert "/later/" in get(served[0], "/")[2]
    assert get(served[0], "/later/")[0] == 200


def test_raw_output_is_text_whatever_it_holds(served: tuple[ReportServer, Path]) -> None:
    status, headers, text = get(served[0], "/whole/raw/001.tinc/daemon.log")
    assert status == 200 and text == "<script>started</script>"
    assert headers["Content-Type"].startswith("text/plain") and headers["X-Content-Type-Options"] == "nosniff"
    assert '<a href="daemon.log">' in get(served[0], "/whole/raw/001.tinc/")[2]


@pytest.mark.parametrize(
    "path", ["/whole/../../secret", "/whole/%2e%2e/%2e%2e/secret", "/whole/link", "/nothing/", "/whole/none"]
)
def test_nothing_outside_of_a_run_is_served(path: str, served: tuple[ReportServer, Path]) -> None:
    status, _, text = get(served[0], path)
    assert status == 404 and "not to be seen" not in text


def test_only_requests_for_this_machine_are_answered(served: tuple[ReportServer, Path]) -> None:
    assert get(served[0], "/", "evil.example")[0] == 403
    assert get(served[0], "/", f"localhost:{served[0].server_port}")[0] == 200
    assert served[0].server_address[0] == "127.0.0.1"


def test_a_folder_without_trailing_slash_is_sent_on(served: tuple[ReportServer, Path]) -> None:
    status, headers, _ = get(served[0], "/whole")
    assert status == 301 and headers["Location"] == "/whole/"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--port", "80"], "--port is for --serve"), (["--serve", "--json"], "--serve goes with neither")],
)
def test_options_that_do_not_go_together_are_an_error(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(write(RUN.results(), tmp_path / "run")), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_port_that_is_taken_is_an_error(
    served: tuple[ReportServer, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(served[1]), "--serve", "--port", str(served[0].server_port)]) == 2
    assert "cannot be used" in capsys.readouterr().err
