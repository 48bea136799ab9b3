"""The command `study`: sources, their claims, and the verdicts of a results folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tunnelmark.claims import reading
from tunnelmark.cli.command import main
from unit.builders import Study
from unit.stored import write

SENDER = {"max_snd_cwnd": 1e6, "mean_rtt": 900, "max_rtt": 1000, "min_rtt": 800}
"""What iperf3 says of the sender's TCP: bytes and microseconds."""


def test_sources_are_listed_with_the_study_that_repeats_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "list"]) == 0
    printed = capsys.readouterr().out
    for name in reading.names():
        assert name in printed


def test_a_source_is_shown_with_all_its_claims(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "show", "vpncloud-ciphers"]) == 0
    printed = capsys.readouterr().out
    assert "What the study vpncloud-ciphers does otherwise" in printed
    for claim in reading.find("vpncloud-ciphers").claims:
        assert claim.id in printed
        assert claim.says in printed


def test_a_source_without_figures_has_nothing_to_hold_its_claims_against(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "show", "cascade"]) == 0
    shown = capsys.readouterr().out
    assert "48 claims; the source prints no figures that one could be held against" in shown
    assert "no value of" not in shown


def test_a_study_is_run_from_here_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "run", "vpncloud-ciphers", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "80 trials in 8 blocks" in printed
    assert "20 of 30 published claims within reach" in printed


def test_a_length_says_how_many_claims_it_has_the_cells_of(capsys: pytest.CaptureFixture[str]) -> None:
    reached = []
    for length in ([], ["--full"]):
        assert main(["run", "mesh-vpns", "--dry-run", *length]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if "within reach" in line]
        reached.append(int(line.split()[0]))
    assert reached[0] < reached[1]
    assert main(["run", "mesh-vpns", "--dry-run", "--smoke"]) == 0
    assert "none with fewer than 3 blocks" in capsys.readouterr().out
    assert main(["run", "quick", "--dry-run", "--full"]) == 2
    assert "no long length" in capsys.readouterr().err


def test_a_name_that_is_nearly_right_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "show", "vpncloud-cipher"]) == 2
    assert "did you mean vpncloud-ciphers?" in capsys.readouterr().err


def results(folder: Path, study: str) -> Path:
    """A folder of results of a study of that name, with VpnCloud at half of the bare link."""
    found = Study(arms=("direct", "plain"), same_as={}, tcp={"plain": 0.5}).results()
    return write(replace(found, plan=replace(found.plan, study=study)), folder)


def test_a_run_gets_a_verdict_for_each_claim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = results(tmp_path / "run", "vpncloud-ciphers")
    assert main(["study", "verdict", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "30 claims: " in printed
    assert "What else this run does otherwise than the source" in printed
    assert "this run has no arm chacha20" in printed
    assert main(["study", "verdict", str(folder), "--json"]) == 0
    verdicts = {each["id"]: each for each in json.loads(capsys.readouterr().out)["verdicts"]}
    assert verdicts["share-of-bare.plain"]["outcome"] == "did not hold"  # 0.94 was printed
    assert verdicts["share-of-bare.plain"]["effects"][0]["estimate"] == pytest.approx(0.5, rel=0.1)
    assert len(verdicts) == len(reading.find("vpncloud-ciphers").claims)


def test_a_run_s_warnings_come_before_its_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = Study(arms=("direct", "plain"), same_as={}, blocks=2).results()
    folder = write(replace(found, plan=replace(found.plan, study="vpncloud-ciphers")), tmp_path / "run")
    assert main(["study", "verdict", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert printed.index("! The study has two blocks: values are shown") < printed.index("30 claims: ")
    assert main(["study", "verdict", str(folder), "--json"]) == 0
    assert any("two blocks" in said for said in json.loads(capsys.readouterr().out)["cautions"])


def test_only_claims_with_a_verdict_are_shown_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = results(tmp_path / "run", "vpncloud-ciphers")
    assert main(["study", "verdict", str(folder), "--only", "did not hold"]) == 0
    printed = capsys.readouterr().out
    assert "share-of-bare.plain" in printed
    assert "\n–" not in printed
    assert main(["study", "verdict", str(folder), "--only", "did not hold", "--json"]) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert "share-of-bare.plain" in {each["id"] for each in verdicts}
    assert {each["outcome"] for each in verdicts} == {"did not hold"}


def test_a_study_that_repeats_nothing_is_told_which_claims_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "verdict", str(results(tmp_path / "run", "mine"))]) == 2
    assert "there are no published claims of the study mine" in capsys.readouterr().err


def test_the_reports_of_a_run_hold_its_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = results(tmp_path / "run", "vpncloud-ciphers")
    main(["report", str(folder)])
    capsys.readouterr()
    for name in ("report.md", "report.html"):
        text = (folder / name).read_text()
        assert "did not hold" in text, name
        assert "One stream over plain reaches 94.3 % of the bare link." in text, name


def test_raw_data_of_a_source_are_judged_and_held_against_what_it_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "bench" / "01.02.2025"
    for place, rate in enumerate((930, 934, 938)):
        host, ends = ("0_a", "1_b", "2_c")[place], ("abc"[place], "abc"[(place + 1) % 3])
        sums = {f"sum_{way}": {"bits_per_second": 1e6 * rate} for way in ("sent", "received")}
        sums["sum_sent"] |= {"retransmits": 1, "bytes": 1e9}
        sums |= {f"sum_{way}_bidir_reverse": {"bits_per_second": 3e8} for way in ("sent", "received")}
        meta = {"source": ends[0], "target": ends[1], "test_attempts": 1}
        file = run / "Internal" / "baseline" / host / "tcp_iperf3.json"
        file.parent.mkdir(parents=True)
        data = {"start": {"tcp_mss_default": 1448}, "end": sums | {"streams": [{"sender": SENDER}]}}
        file.write_text(json.dumps({"status": "success", "data": data, "meta": meta}))
    assert main(["study", "published", "mesh-vpns", "vpn-bench", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    printed = {(each["arm"], each["condition"]): each for each in found["printed"] if each["quantity"] == "tcp"}
    assert (printed["Internal", "baseline"]["printed"], printed["Internal", "baseline"]["agrees"]) == (934, True)
    assert not printed["WireGuard", "baseline"]["agrees"]
    assert any("n = 1" in each for each in found["design"])
    assert len({each["outcome"] for each in found["verdicts"]}) > 1
    assert main(["study", "published", "mesh-vpns", "vpn-bench", str(run), "--only", "not testable", "--json"]) == 0
    only = json.loads(capsys.readouterr().out)
    assert {each["outcome"] for each in only["verdicts"]} == {"not testable"}
    assert only["printed"] == found["printed"]
    assert main(["study", "published", "mesh-vpns", "vpn-bench", str(run)]) == 0
    assert "printed values follow from the data" in capsys.readouterr().out


def test_a_format_that_is_none_is_refused_with_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "published", "mesh-vpns", "vpnbench", str(tmp_path)]) == 2
    assert "vpn-bench" in capsys.readouterr().err
