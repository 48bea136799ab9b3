"""The raw data that authors published give the values that they printed, and where not, the import says what does."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tunnelmark.claims import raw, reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.model import Apart
from tunnelmark.claims.raw.recomputed import Recomputed, compare_with_printed

FOLDER = Path(os.environ.get("TUNNELMARK_RAW_DATA", "none"))
"""Holds `vpn-bench`, with a folder for each date (pkgs/webview-ui/app/bench of Qubasa/vpn-bench), and `knb` (all of
korvoj/vpn-performance: `results-json` and `results-k8s-api`)."""

pytestmark = [
    pytest.mark.proof("raw data of two studies give their printed means to the digit, or say which runs are left out"),
    pytest.mark.skipif(not FOLDER.is_dir(), reason="TUNNELMARK_RAW_DATA names no folder with published raw data"),
]

DATE = "18.12.2025"
TUNED = "26.02.2026-optimized"


def not_agreeing(found: tuple[Recomputed, ...]) -> dict[str, str]:
    return {str(each.printed.cell): each.note for each in found if not each.agrees}


@pytest.fixture(scope="module")
def thesis() -> tuple[Recomputed, ...]:
    """Each printed value of the mesh-VPN thesis, recomputed."""
    claims = reading.find("mesh-vpns")
    values, tuned = (raw.read("vpn-bench", FOLDER / "vpn-bench" / date, claims) for date in (DATE, TUNED))
    return compare_with_printed(claims, values, [tuned])


def test_the_thesis_s_printed_values(thesis: tuple[Recomputed, ...]) -> None:
    differ = not_agreeing(thesis)
    notes = Counter(note.partition(";")[0] for note in differ.values())
    assert len(thesis) - len(differ) >= 409
    assert notes["nothing in the raw data gives it"] == 2
    assert notes[f"is that of {TUNED}"] == 4
    assert {cell for cell, note in differ.items() if note == "nothing in the raw data gives it"} == {
        "VpnCloud, quic-cpu, baseline"
    }


def test_what_the_thesis_read_otherwise_than_its_words_say(thesis: tuple[Recomputed, ...]) -> None:
    differ = not_agreeing(thesis)
    assert differ["Hyprspace, loaded-rtt, baseline"] == "is iperf3's number as printed, which is in µs"
    for arm in ("VpnCloud", "Hyprspace"):
        assert (
            differ[f"{arm}, tcp-received, baseline"]
            == "is what the other direction's stream, at the same time, brought"
        )


def test_which_means_of_the_thesis_are_of_fewer_links(thesis: tuple[Recomputed, ...]) -> None:
    notes = {str(each.printed.cell): each.note for each in thesis if each.agrees and " of 3 runs" in each.note}
    fewer = {cell for cell in notes if ", parallel," in cell}
    assert fewer == {
        *(f"Nebula, parallel, {condition}" for condition in ("baseline", "low", "medium", "high")),
        *(f"Mycelium, parallel, {condition}" for condition in ("medium", "high")),
        "Internal, parallel, low",
        "Hyprspace, parallel, low",
    }
    assert notes["Internal, parallel, low"].startswith("of 1 of 3 runs")


def test_the_kubernetes_study_s_printed_values() -> None:
    claims = reading.find("edge-cloud")
    found = compare_with_printed(claims, raw.read("knb", FOLDER / "knb", claims))
    differ = not_agreeing(found)
    assert len(found) - len(differ) >= 310
    assert set(differ) == {
        "Netbird relay, tcp, native",
        "Netbird relay, tcp-sd, native",
        "ZeroTier direct, udp, native",
        "ZeroTier direct, udp-sd, native",
        "ZeroTier direct, udp, loss-10",
        "ZeroTier direct, udp-sd, loss-10",
    }
    assert differ["ZeroTier direct, udp, loss-10"] == differ["ZeroTier direct, udp-sd, loss-10"], (
        "one run is left out of both"
    )


def test_failed_runs_of_the_kubernetes_study_stay_visible() -> None:
    claims = reading.find("edge-cloud")
    values = raw.read("knb", FOLDER / "knb", claims)
    failed = [run for cell, found in values.cells.items() if cell.quantity == "udp" for run in found.runs if run.failed]
    assert len(failed) == 22


REFUTED = {
    "mesh-vpns": {"parallel-retransmits-clean", "ping-loss-most"},
    "edge-cloud": {"api-apart-netbird-direct", "api-apart-zerotier-relay"},
}
"""What raw data refute although no printed value of their source contradicts it, and all are given by the raw data. Headscale and Yggdrasil send
hundreds of segments again on three links at once; Yggdrasil loses no ping. Response times of the API do not tell NetBird from ZeroTier, nor the two relays, by their ten runs: the source ranked single requests."""


@pytest.mark.parametrize(
    ("source", "name", "place"), [("mesh-vpns", "vpn-bench", f"vpn-bench/{DATE}"), ("edge-cloud", "knb", "knb")]
)
def test_what_the_printed_values_bear_out_the_raw_data_bear_out(source: str, name: str, place: str) -> None:
    """But for claims about a printed value which the raw data do not give, or give of fewer links or runs."""
    claims = reading.find(source)
    values = raw.read(name, FOLDER / place, claims)
    differ = {each.printed.cell for each in compare_with_printed(claims, values) if not each.agrees or each.note}
    refuted = set()
    for claim in claims.claims:
        cells = {
            cell
            for each in claim.statements
            for cell in ((each.one, each.other) if isinstance(each, Apart) else [term for term, _ in each.terms])
        }
        outcome = judge(claim, values).outcome
        if outcome == "did not hold" and cells and not claim.contradicted and not cells & differ:
            refuted.add(claim.id)
    assert refuted == REFUTED[source]
