"""Files that iperf3 printed, measured by hand, are judged as a source's own raw data are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tunnelmark.claims import raw, reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.model import Cell
from tunnelmark.claims.raw.raw_values import RawValues
from tunnelmark.cli.command import main
from tunnelmark.errors import UsageError

OUTPUTS = Path(__file__).parents[1] / "workloads" / "outputs"
CASCADE = reading.find("cascade")


def put(folder: Path, place: str, output: str, **changed: object) -> None:
    """One of iperf3's own outputs, as a run of that name."""
    file = folder / f"{place}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(json.loads((OUTPUTS / output / "client.json").read_text()) | changed))


def seconds(*rates: float) -> dict[str, object]:
    """Intervals of a tenth of a second, ten of each rate in Mbit/s, after a second that iperf3 left out."""
    made = [(place / 10, rate, place < 10) for place, rate in enumerate(r for r in (1, *rates) for _ in range(10))]
    return {
        "intervals": [
            {"sum": {"start": begin, "end": begin + 0.1, "bits_per_second": 1e6 * rate, "omitted": omitted}}
            for begin, rate, omitted in made
        ]
    }


def of(values: RawValues, quantity: str, arm: str = "Direct", condition: str = "internet-1") -> list[float]:
    found = values.of(Cell(quantity, condition, arm))
    return [] if found is None else list(found.values.values())


def test_its_sums_are_the_figures_of_tcp_and_udp(tmp_path: Path) -> None:
    put(tmp_path, "internet-1/Direct/1", "tcp-ipv4")
    put(tmp_path, "Internet_1/direct/2", "udp-ipv6-loss")
    values = raw.read("iperf3", tmp_path, CASCADE)
    assert of(values, "tcp") == pytest.approx([940.956077])
    assert of(values, "udp") == pytest.approx([47.6115746])


def test_seconds_are_told_without_those_that_were_left_out(tmp_path: Path) -> None:
    put(tmp_path, "internet-1/Direct/1", "tcp-ipv4", **seconds(90, 110, 100))
    values = raw.read("iperf3", tmp_path, CASCADE)
    assert of(values, "tcp-spread") == pytest.approx([(200 / 3) ** 0.5])


def test_a_run_that_failed_stays_visible(tmp_path: Path) -> None:
    put(tmp_path, "internet-1/WireGuard/1", "udp-dies")
    put(tmp_path, "internet-1/WireGuard/2", "udp-ipv4")
    values = raw.read("iperf3", tmp_path, CASCADE)
    assert of(values, "udp", "WireGuard") == pytest.approx([99.9257219])
    assert any("iperf3 says 'unable to send control message: Broken pipe'" in line for line in values.missing())
    assert "1 of 2 runs have a value" in values.obstacle({Cell("udp", "internet-1", "WireGuard"): 1}, "ratio")


def test_other_workloads_have_a_folder_of_their_name(tmp_path: Path) -> None:
    mesh = reading.find("mesh-vpns")
    put(tmp_path, "baseline/Internal/udp-flood/1", "udp-ipv4")
    put(tmp_path, "baseline/Internal/1", "tcp-ipv4")
    values = raw.read("iperf3", tmp_path, mesh)
    told = {mesh.quantities[cell.quantity].workload for cell in values.cells}
    assert told == {"udp-flood", "tcp"}


def test_claims_are_judged_over_runs_that_are_not_paired(tmp_path: Path) -> None:
    for run in range(5):
        rates = {"sum_sent": {}, "sum_received": {"bits_per_second": 5e6 + 1e5 * run}}
        put(tmp_path, f"internet-1/Direct/{run}", "tcp-ipv4", end=rates)
        put(tmp_path, f"internet-1/Direct/u{run}", "udp-ipv4")
    values = raw.read("iperf3", tmp_path, CASCADE)
    outcomes = {claim.id: judge(claim, values).outcome for claim in CASCADE.claims}
    assert outcomes["udp-ahead-1.direct"] == "held"
    assert outcomes["udp-ahead-3.direct"] == "not testable"


def test_a_folder_without_any_is_answered_with_the_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no file of iperf3") as raised:
        raw.read("iperf3", tmp_path, CASCADE)
    assert "internet-1" in raised.value.hint and "WireGuard" in raised.value.hint


def test_the_command_says_what_the_design_does_not_allow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "internet-1/Direct/1", "tcp-ipv4", **seconds(90, 110, 100))
    assert main(["study", "published", "cascade", "iperf3", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "so nothing is paired" in printed and "--reverse" in printed
