"""The figures of mesh-vpns.toml against what its source computes of them: shares, ratios, means and counts, to the printed digit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from statistics import fmean

import pytest

from tunnelmark.claims import reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.model import Apart, Cell
from tunnelmark.claims.printed import PrintedValues

FILE = reading.find("mesh-vpns")
ARMS = [arm for arm in FILE.arms if not arm.endswith(("-gvisor", "-reorder"))]
"""Those of the source's main run; the others are of its runs with other kernel settings."""

SHARES = {
    "WireGuard": 92.5, "ZeroTier": 87.2, "Headscale": 85.6, "Yggdrasil": 85.1, "Nebula": 75.6, "EasyTier": 68.1, "VpnCloud": 57.7,
    "Hyprspace": 39.4, "Tinc": 36.0, "Mycelium": 27.7,
}  # fmt: skip
"""tab tcp_baseline, per cent of the bare link."""

SCALING = {
    "Mycelium": 2.20, "Hyprspace": 2.18, "Tinc": 1.68, "Yggdrasil": 1.59, "Headscale": 1.54, "Internal": 1.50, "ZeroTier": 1.48, "WireGuard": 1.48,
    "EasyTier": 1.46, "VpnCloud": 1.42, "Nebula": 0.92,
}  # fmt: skip
"""tab parallel_scaling."""

OVERHEADS = {
    "Nebula": 7.3, "ZeroTier": 8.1, "VpnCloud": 10.0, "EasyTier": 10.1, "WireGuard": 10.8, "Headscale": 14.8, "Tinc": 17.2, "Mycelium": 18.1,
    "Yggdrasil": 24.2, "Hyprspace": 39.7,
}  # fmt: skip
"""tab nix_cache, per cent above the bare link."""

RETENTION = {
    "Internal": 35.7, "WireGuard": 6.3, "ZeroTier": 7.8, "Headscale": 34.3, "Yggdrasil": 1.7, "Nebula": 7.1, "EasyTier": 24.6, "VpnCloud": 10.8,
    "Hyprspace": 1.2, "Tinc": 16.2, "Mycelium": 6.3,
}  # fmt: skip
"""tab tcp_impairment, per cent of Baseline at Low."""

Of = tuple[str, str, str]

SENTENCES: list[tuple[Of, Of, Callable[[float], float], float, float]] = [
    (("ping", "baseline", "Mycelium"), ("ping", "baseline", "Internal"), lambda r: r, 58, 1),
    (("ping-max", "baseline", "ZeroTier"), ("ping", "baseline", "ZeroTier"), lambda r: r, 6.8, 0.1),
    (("tcp-received", "baseline", "VpnCloud"), ("tcp-sent", "baseline", "VpnCloud"), lambda r: 100 * (1 - r), 23, 1),
    (("tcp", "baseline", "ZeroTier"), ("tcp", "baseline", "WireGuard"), lambda r: 100 * (1 - r), 6, 1),
    (("quic-first-byte", "baseline", "Mycelium"), ("quic-first-byte", "baseline", "Internal"), lambda r: r, 5.6, 0.1),
    (("tcp-yuki-luna", "baseline", "Mycelium"), ("tcp-luna-lom", "baseline", "Mycelium"), lambda r: r, 3, 1),
    (("ping", "low", "Mycelium"), ("ping", "baseline", "Mycelium"), lambda r: 100 * (1 - r), 33, 1),
    (("tcp", "low", "Yggdrasil"), ("tcp", "baseline", "Yggdrasil"), lambda r: 100 * (1 - r), 98.3, 0.1),
    (("tcp", "medium", "Headscale"), ("tcp", "medium", "Internal"), lambda r: 100 * (r - 1), 40, 1),
    (("tcp", "medium", "Internal"), ("tcp", "medium", "Headscale"), lambda r: r, 0.71, 0.01),
    (("parallel", "low", "Headscale"), ("parallel", "low", "Internal"), lambda r: r, 2.6, 0.1),
    (("parallel", "low", "Headscale"), ("parallel", "low", "WireGuard"), lambda r: r, 4.1, 0.1),
    (("parallel", "medium", "Headscale"), ("parallel", "medium", "Internal"), lambda r: 100 * (r - 1), 37, 1),
    (("parallel", "low", "EasyTier"), ("parallel", "baseline", "EasyTier"), lambda r: 100 * r, 51, 1),
    (("parallel", "low", "Hyprspace"), ("parallel", "baseline", "Hyprspace"), lambda r: 100 * (1 - r), 99.6, 0.1),
    (("nix", "medium", "Headscale"), ("nix", "medium", "Internal"), lambda r: 100 * (1 - r), 17, 1),
    (("nix", "low", "Yggdrasil"), ("nix", "baseline", "Yggdrasil"), lambda r: r, 22, 1),
    (("nix", "low", "Mycelium"), ("nix", "baseline", "Mycelium"), lambda r: r, 8, 1),
    (("tcp", "medium", "Internal-reorder"), ("tcp", "medium", "Internal"), lambda r: 100 * (r - 1), 146, 1),
    (("parallel", "low", "Internal-reorder"), ("parallel", "low", "Internal"), lambda r: 100 * (r - 1), 226, 1),
    (("tcp", "medium", "Internal-reorder"), ("tcp", "medium", "Headscale-reorder"), lambda r: r, 1.45, 0.01),
    (("tcp", "medium", "WireGuard-gvisor"), ("tcp", "medium", "WireGuard"), lambda r: 100 * (r - 1), 39, 1),
    (("tcp", "medium", "Tinc-gvisor"), ("tcp", "medium", "Tinc"), lambda r: 100 * (r - 1), 108, 1),
    (("tcp", "medium", "Headscale-reorder"), ("tcp", "medium", "Headscale"), lambda r: 100 * (r - 1), 21, 1),
    (("udp", "baseline", "Yggdrasil"), ("udp-sent", "baseline", "Yggdrasil"), lambda r: 100 * (1 - r), 98.7, 0.1),
]
"""What the text says of two values, with the step of its last digit."""

ANOMALY: Mapping[tuple[str, str], tuple[float, float, float]] = {
    ("tcp", "low"): (333, 274, 54.7),
    ("tcp", "medium"): (29.6, 41.5, 8.77),
    ("tcp", "high"): (4.25, 4.21, 2.63),
    ("parallel", "low"): (277, 718, 173),
    ("parallel", "medium"): (82.6, 113, 24.5),
    ("nix", "medium"): (58.6, 48.8, 161),
}
"""tab headscale_anomaly: Internal, Headscale, WireGuard."""

CONTRADICTED = {
    "tcp-hyprspace-worst",
    "ping-adds-34.9",
    "nix-latency-yggdrasil-mycelium",
    "ping-cluster-order.low",
    "ping-cluster-order.medium",
    "ping-cluster-order.high",
    "tcp-high-alike",
    "udp-failure-means-vpn",
    "parallel-anomaly-grows-medium",
    "parallel-converges-more",
    "parallel-high-no-advantage",
    "anomaly-emerges-parallel",
}
"""Where the source's sentences and its figures disagree."""


def value(of: Of) -> float:
    return FILE.printed[Cell(*of)].value


def half_a_digit(number: float) -> float:
    """Half of the last printed digit, or of one before it where that was a zero."""
    return 0.5 * 10.0 ** -len(f"{number:g}".partition(".")[2])


def rounds_to(one: Of, other: Of, made: Callable[[float], float], printed: float, step: float) -> bool:
    """Whether two values that round to what is printed can give a third that rounds to what is printed of them."""
    ends = [(value(each) - half_a_digit(value(each)), value(each) + half_a_digit(value(each))) for each in (one, other)]
    found = [made(upper / lower) for upper, lower in product(*ends)]
    return min(found) <= printed + step / 2 and max(found) >= printed - step / 2


@pytest.mark.parametrize(("arm", "printed"), SHARES.items(), ids=SHARES)
def test_shares_of_the_bare_link_follow(arm: str, printed: float) -> None:
    one, other = ("tcp", "baseline", arm), ("tcp", "baseline", "Internal")
    assert rounds_to(one, other, lambda r: 100 * r, printed, 0.1)


@pytest.mark.parametrize(("arm", "printed"), SCALING.items(), ids=SCALING)
def test_scaling_factors_follow(arm: str, printed: float) -> None:
    assert rounds_to(("parallel", "baseline", arm), ("tcp", "baseline", arm), lambda r: r, printed, 0.01)


@pytest.mark.parametrize(("arm", "printed"), OVERHEADS.items(), ids=OVERHEADS)
def test_overheads_of_downloads_follow(arm: str, printed: float) -> None:
    one, other = ("nix", "baseline", arm), ("nix", "baseline", "Internal")
    assert rounds_to(one, other, lambda r: 100 * (r - 1), printed, 0.1)


@pytest.mark.parametrize(("arm", "printed"), RETENTION.items(), ids=RETENTION)
def test_retention_follows(arm: str, printed: float) -> None:
    assert rounds_to(("tcp", "low", arm), ("tcp", "baseline", arm), lambda r: 100 * r, printed, 0.1)


@pytest.mark.parametrize(
    ("one", "other", "made", "printed", "step"), SENTENCES, ids=[f"{one}-{other}" for one, other, *_ in SENTENCES]
)
def test_ratios_in_sentences_follow(
    one: Of, other: Of, made: Callable[[float], float], printed: float, step: float
) -> None:
    assert rounds_to(one, other, made, printed, step)


def test_means_over_nodes_and_paths_follow() -> None:
    nodes = ("reboot-first", "reboot-middle", "reboot-last")
    for arm in ("Nebula", "Mycelium"):
        mean = fmean(value((node, "baseline", arm)) for node in nodes)
        assert mean == pytest.approx(value(("reboot", "baseline", arm)), abs=0.05)
    paths = [value((path, "baseline", "Mycelium")) for path in ("ping-luna-lom", "ping-lom-yuki", "ping-yuki-luna")]
    assert fmean(paths) == pytest.approx(value(("ping", "baseline", "Mycelium")), abs=0.05)


def test_the_table_of_the_anomaly_repeats_the_others() -> None:
    for (quantity, condition), printed in ANOMALY.items():
        arms = ("Internal", "Headscale", "WireGuard")
        assert tuple(value((quantity, condition, arm)) for arm in arms) == printed


def test_counts_of_completed_downloads_follow() -> None:
    completed = {
        condition: sum(value(("nix-success", condition, arm)) == 100 for arm in ARMS)
        for condition in ("low", "medium", "high")
    }
    assert completed == {"low": 10, "medium": 9, "high": 3}
    for condition, arm in product(("low", "medium", "high"), ARMS):
        assert (Cell("nix", condition, arm) in FILE.printed) == (value(("nix-success", condition, arm)) == 100)


def test_failures_of_a_benchmark_make_the_success_of_the_suite() -> None:
    for arm in ARMS:
        failed = [value(("udp-success", "baseline", arm)) == 0, Cell("quic-success", "baseline", arm) in FILE.printed]
        assert 100 * (7 - sum(failed)) / 7 == pytest.approx(value(("suite-success", "baseline", arm)), abs=0.05)


def test_differences_in_sentences_follow() -> None:
    assert max(_column("baseline")) - min(_column("baseline")) == 675
    assert max(_column("high")) - min(_column("high")) == pytest.approx(2.9, abs=0.05)
    assert value(("ping", "high", "EasyTier")) - value(("ping", "high", "Internal")) == pytest.approx(11, abs=0.5)
    assert value(("parallel", "baseline", "VpnCloud")) - value(("parallel", "baseline", "Tinc")) == 200


def _column(condition: str) -> list[float]:
    return [value(("tcp", condition, arm)) for arm in ARMS]


def test_where_the_source_contradicts_itself() -> None:
    source = PrintedValues.of_source(FILE)
    contradicted = {claim.id: claim for claim in FILE.claims if claim.contradicted}
    assert set(contradicted) == CONTRADICTED
    for claim in contradicted.values():
        assert judge(claim, source).outcome == "did not hold", claim.id


def test_each_printed_value_is_in_a_claim() -> None:
    named = {
        cell
        for claim in FILE.claims
        for each in claim.statements
        for cell in ((each.one, each.other) if isinstance(each, Apart) else [cell for cell, _ in each.terms])
    }
    unused = sorted(set(FILE.printed) - named)
    assert not unused, [str(cell) for cell in unused]
