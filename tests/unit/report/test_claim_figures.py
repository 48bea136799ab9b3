"""What a figure of a claim is of, and in what unit: one that sees the figure alone knows what was divided by what."""

from __future__ import annotations

import pytest

from tunnelmark.claims import reading
from tunnelmark.claims.model import Cell, Effect, EffectScale, Statement
from tunnelmark.report import claim_figures

CASCADE = reading.find("cascade")


def of(
    scale: EffectScale, *terms: tuple[str, str, str, int], low: float | None = 1.0, high: float | None = None
) -> Statement:
    return Statement(tuple((Cell(*names), power) for *names, power in terms), scale, low, high, 1.25)


TCP = of("ratio", ("tcp", "local-1", "WireGuard", 1), ("tcp", "local-1", "OpenVPN", -1))
CORES = of("difference", ("cores", "local-1", "WireGuard", 1), low=None, high=95.0)
MORE_CORES = of("difference", ("cores", "local-1", "WireGuard", 1), ("cores", "local-1", "Direct", -1))
HOPS = of("ratio", ("tcp", "local-1", "Direct", 1), ("udp", "local-3", "Direct", -1))
SHARES = of(
    "ratio",
    ("udp", "local-3", "WireGuard", 1),
    ("udp", "local-1", "WireGuard", -1),
    ("udp", "local-3", "Direct", -1),
    ("udp", "local-1", "Direct", 1),
)


@pytest.mark.parametrize(
    ("statement", "compared", "printed", "allowed"),
    [
        (TCP, "throughput of TCP, one hop, local: WireGuard / OpenVPN", "1.25×", "≥ 1×"),
        (CORES, "how much of all cores is used, one hop, local, WireGuard", "1.25 %", "≤ 95 %"),
        (MORE_CORES, "how much of all cores is used, one hop, local: WireGuard − Direct", "1.25 points", "≥ 1 points"),
        (HOPS, "Direct: throughput of TCP, one hop, local / throughput of UDP, three hops, local", "1.25×", "≥ 1×"),
        (
            SHARES,
            "throughput of UDP: (three hops, local, WireGuard × one hop, local, Direct) / (one hop, local, WireGuard × three hops, local, Direct)",
            "1.25×",
            "≥ 1×",
        ),
    ],
)
def test_a_figure_says_what_it_compares(statement, compared, printed, allowed):
    assert claim_figures.compared(statement, CASCADE) == compared
    assert claim_figures.printed(statement, CASCADE) == printed
    assert claim_figures.allowed(statement, CASCADE) == allowed


@pytest.mark.parametrize(
    ("low", "high", "allowed"), [(88.7, 108.7, "≥ 88.7 %"), (-0.1, 0.1, "≤ 0.1 %"), (4.0, 9.0, "4 to 9 %")]
)
def test_a_share_is_not_allowed_what_no_share_is(low: float, high: float, allowed: str):
    cores = of("difference", ("cores", "local-1", "WireGuard", 1), low=low, high=high)
    more = of("difference", ("cores", "local-1", "WireGuard", 1), ("cores", "local-1", "Direct", -1), low=-1, high=200)
    assert claim_figures.allowed(cores, CASCADE) == allowed
    assert claim_figures.allowed(more, CASCADE) == "-1 to 200 points"


def test_equal_values_have_a_number_and_no_interval():
    assert claim_figures.found(Effect(TCP, 1.0, 1.0, 1.0 + 1e-15, 3, "held"), CASCADE) == "1× (3 equal values)"


def test_an_estimate_has_its_interval_and_a_point_has_none():
    assert claim_figures.found(Effect(TCP, 1.3, 1.234, 1.399, 8, "held"), CASCADE) == "1.3× [1.23–1.4]"
    assert claim_figures.found(Effect(TCP, 1.3, None, None, 1, "held"), CASCADE) == "1.3×"


@pytest.mark.parametrize("name", reading.names())
def test_every_figure_of_every_source_can_be_said(name):
    claims = reading.find(name)
    for claim in claims.claims:
        for each in claim.statements:
            if isinstance(each, Statement):
                assert claim_figures.compared(each, claims) and claim_figures.allowed(each, claims)
