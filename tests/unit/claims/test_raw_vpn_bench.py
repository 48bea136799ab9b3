"""Raw data of the mesh-VPN suite, on trees of its shape with invented numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tunnelmark.claims import raw, reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.model import Cell, ClaimsFile
from tunnelmark.claims.raw.recomputed import Recomputed, compare_with_printed
from tunnelmark.errors import StoreError, UnknownName, UsageError

CLAIMS = """
[source]
authors = "A. Author"
year = 2020
title = "invented"
study = "mesh-vpns"

[arms]
Internal = "direct"
WireGuard = "wireguard"

[absent]
Internal-gvisor = "invented"

[condition.baseline]
title = "Baseline"
profile = "gigabit"

[condition.low]
title = "Low"
profile = "thesis-low+gso+gigabit"

[quantity.tcp]
title = "one stream"
unit = "Mbit/s"
kind = "rate"
better = "higher"
workload = "tcp"
metric = "goodput"
factor = 1e6

[quantity.tcp-received]
title = "one stream, by the receiver"
unit = "Mbit/s"
kind = "rate"
better = "higher"
unmeasured = "invented"

[quantity.tcp-b-a]
title = "from b to a"
unit = "Mbit/s"
kind = "rate"
better = "higher"
unmeasured = "invented"

[quantity.parallel]
title = "all links at once"
unit = "Mbit/s"
kind = "rate"
better = "higher"
unmeasured = "invented"

[quantity.udp-success]
title = "floods that ended"
unit = "%"
kind = "share"
better = "higher"
unmeasured = "invented"

[quantity.suite-success]
title = "benchmarks that passed"
unit = "%"
kind = "share"
better = "higher"
unmeasured = "invented"

[quantity.reboot]
title = "after a reboot"
unit = "s"
kind = "time"
better = "lower"
unmeasured = "invented"

[quantity.first-packet]
title = "the format has no such figure"
unit = "s"
kind = "time"
better = "lower"
unmeasured = "invented"

[[table]]
place = "tab 1"
quantity = "tcp"
conditions = ["baseline", "low"]
rows = { Internal = [800.0, 100], WireGuard = [400.0, 99], Internal-gvisor = [900, nan] }

[[table]]
place = "tab 2"
quantity = "tcp-received"
conditions = ["baseline"]
rows = { Internal = [300.0] }

[[claim]]
id = "half"
place = "tab 1"
says = "WireGuard has {value}."
test = "ratio"
quantity = "tcp"
conditions = ["baseline", "low"]
arms = ["WireGuard"]
over = [{ arm = "Internal" }]
"""
HOSTS = ("0_a", "1_b", "2_c")


def write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def iperf3(sent: float, received: float = 0.0, back: float = 0.0) -> dict[str, Any]:
    """The sums of a run both ways, in Mbit/s."""
    sums = {
        "sum_sent": sent,
        "sum_received": received,
        "sum_sent_bidir_reverse": back,
        "sum_received_bidir_reverse": back,
    }
    return {"end": {name: {"bits_per_second": 1e6 * value} for name, value in sums.items()}}


def passed(data: object, source: str = "", target: str = "", attempts: int = 1) -> dict[str, Any]:
    return {"status": "success", "data": data, "meta": {"source": source, "target": target, "test_attempts": attempts}}


FAILED = {"status": "error", "error_type": "CmdOut", "error": {}, "timeout": 120, "meta": {"test_attempts": 3}}


@pytest.fixture
def claims(tmp_path: Path) -> ClaimsFile:
    """Claims about an invented table."""
    (tmp_path / "invented.toml").write_text(CLAIMS)
    return reading.read(tmp_path / "invented.toml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of two arms at two impairments, three links each: means of 800 and 400, and of 100 and of 99 where a link failed."""
    run = tmp_path / "bench" / "01.02.2025"
    rates: dict[tuple[str, str], tuple[float, ...]]
    rates = {("Internal", "baseline"): (700, 800, 900), ("Wireguard", "baseline"): (0, 500, 700)}
    rates |= {("Internal", "low_impairment"): (100, 100, 100), ("Wireguard", "low_impairment"): (99, 99)}
    for (arm, profile), values in rates.items():
        for place, (host, value) in enumerate(zip(HOSTS, values, strict=False)):
            ends = ("abc"[place], "abc"[(place + 1) % 3])
            content = passed(iperf3(value, value - 1, back=300), *ends, attempts=2 if host == "1_b" else 1)
            write(run / arm / profile / host / "tcp_iperf3.json", content)
    write(run / "Wireguard" / "low_impairment" / "2_c" / "tcp_iperf3.json", FAILED)
    return run


def of(found: tuple[Recomputed, ...], arm: str, condition: str = "baseline", quantity: str = "tcp") -> Recomputed:
    return next(each for each in found if each.printed.cell == Cell(quantity, condition, arm))


def test_a_published_mean_is_that_of_the_links(claims: ClaimsFile, folder: Path) -> None:
    found = compare_with_printed(claims, raw.read("vpn-bench", folder, claims))
    assert of(found, "Internal").agrees
    assert of(found, "WireGuard").value == pytest.approx(400), "a link in which nothing arrived is a part of the mean"
    assert of(found, "WireGuard").note == ""


def test_a_mean_of_fewer_links_agrees_and_says_so(claims: ClaimsFile, folder: Path) -> None:
    values = raw.read("vpn-bench", folder, claims)
    found = of(compare_with_printed(claims, values), "WireGuard", "low")
    assert found.agrees
    assert found.note == "of 2 of 3 runs (2_c: timed out after 3 attempts)"
    assert values.missing() == (
        "WireGuard, low, tcp, tcp-received: 2 of 3 have a value (2_c: timed out after 3 attempts)",
    )
    assert any(
        line.startswith("Internal, baseline, tcp") and "1_b succeeded at attempt 2" in line for line in values.retried()
    )


def test_claims_are_decided_by_the_mean_and_not_where_a_link_failed(claims: ClaimsFile, folder: Path) -> None:
    values = raw.read("vpn-bench", folder, claims)
    baseline, low = (judge(claim, values) for claim in claims.claims)
    assert baseline.outcome == "held"
    assert baseline.effects[0].estimate == pytest.approx(0.5)
    assert baseline.effects[0].low is None, "one run of each link has no interval"
    assert low.outcome == "not testable"
    assert "2 of 3 runs" in low.reason


def test_what_the_words_of_a_source_stand_for_in_its_data_is_named(claims: ClaimsFile, folder: Path) -> None:
    found = of(compare_with_printed(claims, raw.read("vpn-bench", folder, claims)), "Internal", quantity="tcp-received")
    assert not found.agrees
    assert found.value == pytest.approx(799)
    assert "the other direction's stream" in found.note


def test_another_date_that_gives_the_value_is_named(claims: ClaimsFile, folder: Path) -> None:
    tuned = folder.parent / "03.02.2025-optimized"
    for host in HOSTS:
        write(tuned / "Internal" / "baseline" / host / "tcp_iperf3.json", passed(iperf3(900)))
    values, other = (raw.read("vpn-bench", each, claims) for each in (folder, tuned))
    assert other.of(Cell("tcp", "baseline", "Internal")) is None, "tuned kernels are arms of their own"
    found = of(compare_with_printed(claims, values, [other]), "Internal-gvisor")
    assert (found.agrees, found.note) == (False, "is that of 03.02.2025-optimized")
    assert of(compare_with_printed(claims, values), "Internal-gvisor").note == "not in the raw data"


def test_a_link_is_found_in_either_direction(claims: ClaimsFile, folder: Path) -> None:
    cell = Cell("tcp-b-a", "baseline", "Internal")
    found = raw.read("vpn-bench", folder, claims).of(cell)
    assert found is not None
    assert list(found.values.values()) == [300], "the stream back of a's own"


def test_links_that_were_loaded_at_once_are_added_up(claims: ClaimsFile, folder: Path) -> None:
    pairs = [
        {"source": "a", "target": "b", "result": iperf3(10)},
        {"source": "b", "target": "c", "result": iperf3(20)},
        {"source": "c", "target": "a", "error": "no answer", "error_type": "ClanCmdError"},
    ]
    write(folder / "Internal" / "baseline" / "parallel_tcp_iperf3.json", passed({"pairs": pairs}))
    values = raw.read("vpn-bench", folder, claims)
    cell = Cell("parallel", "baseline", "Internal")
    assert values.cells[cell].figure == pytest.approx(30)
    assert values.obstacle({cell: 1}, "ratio") == f"{cell}: 2 of 3 runs have a value (c to a: failed (ClanCmdError))"


def test_success_and_reboots(claims: ClaimsFile, folder: Path) -> None:
    place = folder / "Internal" / "baseline"
    for host, seconds in zip(HOSTS, ("0:00:08.5", "0:01:00", "0:00:09.5"), strict=True):
        write(place / host / "udp_iperf3.json", FAILED if host == "0_a" else passed(iperf3(1)))
        later = {"time_took": "0:02:00"}
        write(
            place / host / "reboot_connection_timings.json", {"vpn_results": {"x": {"time_took": seconds}, "y": later}}
        )
    values = raw.read("vpn-bench", folder, claims)
    assert values.cells[Cell("udp-success", "baseline", "Internal")].figure == pytest.approx(200 / 3)
    assert values.cells[Cell("reboot", "baseline", "Internal")].figure == pytest.approx(26)
    assert Cell("reboot", "low", "Internal") not in values.cells, "it was not run there"
    assert values.cells[Cell("suite-success", "baseline", "Internal")].figure == pytest.approx(100 / 7)


def test_the_design_says_what_it_does_not_allow(claims: ClaimsFile, folder: Path) -> None:
    values = raw.read("vpn-bench", folder, claims)
    assert not values.paired
    assert any("n = 1" in line for line in values.design)
    assert any("paired" in line for line in values.design)
    assert "first-packet" in values.design[-1]


def test_the_folder_of_all_dates_names_them(claims: ClaimsFile, folder: Path) -> None:
    with pytest.raises(UsageError) as error:
        raw.read("vpn-bench", folder.parent, claims)
    assert "01.02.2025" in error.value.hint


def test_what_cannot_be_read_is_an_error_with_the_file(claims: ClaimsFile, folder: Path) -> None:
    file = folder / "Internal" / "baseline" / "0_a" / "tcp_iperf3.json"
    for content, word in (
        ("{", "cannot be read"),
        ('{"status": "perhaps"}', "perhaps"),
        ('{"status": "success", "data": {}}', "end"),
    ):
        file.write_text(content)
        with pytest.raises(StoreError, match=word) as error:
            raw.read("vpn-bench", folder, claims)
        assert str(file) in error.value.message
        assert error.value.hint


def test_claims_in_another_unit_are_refused(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "other.toml").write_text(
        CLAIMS.replace('title = "one stream"\nunit = "Mbit/s"', 'title = "one stream"\nunit = "Gbit/s"')
    )
    with pytest.raises(UsageError, match="Gbit/s"):
        raw.read("vpn-bench", folder, reading.read(tmp_path / "other.toml"))


def test_an_unknown_format_and_no_folder(claims: ClaimsFile, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="iperf"):
        raw.read("iperf", tmp_path, claims)
    with pytest.raises(UsageError, match="not a folder"):
        raw.read("knb", tmp_path / "none", claims)
