"""`check-link` says what it was asked wrongly, and prints a check as tables or as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tunnelmark import cli
from tunnelmark.cli import link_command
from tunnelmark.record.link_check import LinkCheck, LinkLine


def check(*, ok: bool) -> LinkCheck:
    lines = (
        LinkLine("a>b", "delay_mean", "ms", "20 ms", 20.0, 19.8, 20.2, 20.05 if ok else 30.0, ok=ok),
        LinkLine("a>b", "rate", "bit/s", "1 Gbit/s", 1e9, 9.8e8, 1.02e9, 1.001e9, ok=True),
        LinkLine("b>a", "late", "us", "", 0.0, 0.0, 1000.0, 44.0, True, "99 % of departures"),
    )
    verdict: Any = "verified" if ok else "outside"
    reason = "" if ok else "delay, mean a>b: 30.000 ms, not 19.800 ms to 20.200 ms"
    return LinkCheck("wifi-good", "pair", "alone", 1.79e9, 3.0, verdict, reason, lines)


def answers(monkeypatch: pytest.MonkeyPatch, *, ok: bool) -> None:
    async def found(*_: object) -> LinkCheck:
        return check(ok=ok)

    monkeypatch.setattr(link_command, "verify", found)


def test_a_proved_link(monkeypatch, capsys):
    answers(monkeypatch, ok=True)
    assert cli.main(["check-link", "wifi-good+gigabit"]) == 0
    said = capsys.readouterr().out
    assert "delay, mean" in said
    assert "20.050 ms" in said
    assert "1.001 Gbit/s" in said
    assert "the link does what each part of the profile says" in said


def test_a_link_that_is_outside(monkeypatch, capsys):
    answers(monkeypatch, ok=False)
    assert cli.main(["check-link", "wifi-good"]) == 1
    assert "not 19.800 ms to 20.200 ms" in capsys.readouterr().out


def test_what_nothing_could_show_is_called_not_tested(monkeypatch, capsys):
    line = LinkLine("a>b", "rate", "bit/s", "1 Gbit/s", 1e9, 1.0, 2.0, 5e8, None, "not judged: the sender was slow")
    for others in (check(ok=True).lines, ()):

        async def found(*_: object, others: tuple[LinkLine, ...] = others) -> LinkCheck:
            return LinkCheck("gigabit", "pair", "alone", 1.79e9, 3.0, "verified", "", (*others[:1], line))

        monkeypatch.setattr(link_command, "verify", found)
        assert cli.main(["check-link", "gigabit"]) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        assert last.startswith("not tested")
        assert "rate a>b of gigabit (the sender was slow)" in last


def test_json(monkeypatch, capsys):
    answers(monkeypatch, ok=True)
    assert cli.main(["check-link", "wifi-good", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == "verified"
    assert [line["name"] for line in said["lines"]] == ["delay_mean", "rate", "late"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["wifi-god"], "wifi-good"),
        (["wifi-good", "--probes", "10"], "--probes"),
        (["wifi-good", "--rate", "nan"], "--rate above 0"),
        (["wifi-good", "--rate", "0"], "--rate"),
        (["vdsl+gigabit"], "join profiles"),
    ],
)
def test_what_is_asked_wrongly(arguments, hint, capsys):
    assert cli.main(["check-link", *arguments]) == 2
    assert hint in capsys.readouterr().err
