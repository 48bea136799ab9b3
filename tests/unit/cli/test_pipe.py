"""What goes through a pipe: lines whole, without padding, commands that can be copied; the terminal keeps its width."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import command, environment
from tunnelmark.analyse import judge
from tunnelmark.cli import command as cli
from tunnelmark.cli import output
from tunnelmark.cli.link_command import show
from tunnelmark.doctor.checks import Check
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile
from tunnelmark.record.link_check import LinkCheck, LinkLine
from tunnelmark.report import terminal
from unit.builders import TCP, UDP, Study

LONG = "a value that is a good deal longer than any terminal is wide " * 5


def piped(*arguments: str) -> list[str]:
    """The lines of a command whose output is a pipe, at what would be a narrow terminal."""
    done = subprocess.run(
        command(*arguments), stdout=subprocess.PIPE, env=environment() | {"COLUMNS": "40"}, check=True
    )
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize(
    "arguments", [("list", "profiles"), ("list", "vpns"), ("matrix", "tinc"), ("matrix", "--group", "choosing")]
)
def test_no_line_ends_in_blanks(arguments: tuple[str, ...]) -> None:
    lines = piped(*arguments)
    assert len(lines) > 5
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_row_of_a_table_is_one_line() -> None:
    line = next(line for line in piped("list", "profiles") if line.startswith("cascade-internet"))
    assert "Cascading VPNs, Internet conditions: 30 ms, jitter 1 ms, loss 0.5 %, 1 Gbit/s" in line


def test_nothing_is_broken_however_long_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("name", "what"), [("one", LONG), ("two", "short")])
    assert capsys.readouterr().out.splitlines() == ["name  what", f"one   {LONG.rstrip()}", "two   short"]


def test_a_command_to_copy_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.console().print(f"Go on with: tunnelmark run --resume {LONG}")
    assert capsys.readouterr().out == f"Go on with: tunnelmark run --resume {LONG.rstrip()}\n"


def test_the_report_has_no_padding_and_no_table_that_nobody_can_read(capsys: pytest.CaptureFixture[str]) -> None:
    output.console(stderr=True).print(terminal.render(judge(Study(workloads=(TCP, UDP)).results())))
    out, said = capsys.readouterr()
    assert not out
    assert [line for line in said.splitlines() if line != line.rstrip()] == []
    assert "95 % interval" in said


def test_a_terminal_keeps_its_width() -> None:
    script = f"from tunnelmark.cli.output import table; table(('name', 'what'), [('one', {LONG!r})])"
    leader, follower = pty.openpty()
    environ = environment() | {"COLUMNS": "60", "LINES": "20", "TERM": "dumb"}
    with subprocess.Popen([sys.executable, "-c", script], stdout=follower, env=environ):
        os.close(follower)
        lines = _read(leader).decode().splitlines()
    assert max(map(len, lines)) <= 60
    assert len(lines) > 5


def _read(leader: int) -> bytes:
    """All that is printed until the last holder of the other end has closed it."""
    said = b""
    try:
        while part := os.read(leader, 65536):
            said += part
    except OSError:  # Linux says EIO where others say end of file
        pass
    os.close(leader)
    return said


def test_a_results_folder_with_a_blank_in_its_name_can_be_copied(tmp_path: Path) -> None:
    from tunnelmark.cli.measuring import go_on

    assert go_on(tmp_path / "my results") == f"tunnelmark run --resume '{tmp_path}/my results'"


def test_a_link_check_and_the_doctor_have_no_padding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = [
        Check("machine", "system", "ok", "Linux"),
        Check("vpns", "tinc", "warn", "the program tincd is not installed", f"apt-get install {LONG.rstrip()}"),
    ]
    monkeypatch.setattr("tunnelmark.cli.doctor_command.examine", lambda parts: checks)
    assert cli.main(["doctor"]) == 0
    lines = (
        LinkLine("a>b", "delay_mean", "ms", "20 ms", 20.0, 19.8, 20.2, 20.05, ok=True),
        LinkLine("a>b", "late", "us", "", 0.0, 0.0, 1000.0, 44.0, ok=True, note=LONG.rstrip()),
    )
    show(
        LinkCheck("gigabit", "pair", "alone", 0.0, 1.0, "verified", "", lines),
        load_profile("gigabit", Files.standard()),
    )
    said = capsys.readouterr().out.splitlines()
    assert len([line for line in said if line.endswith(LONG.rstrip())]) == 2
    assert [line for line in said if line != line.rstrip()] == []
