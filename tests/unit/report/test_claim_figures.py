"""What a figure of a claim is of, and in what unit: one that sees the figure alone knows what was divided by what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.claims import reading
from tunnelmark.claims.model import Cell, Effect, EffectScale, Statement
from tunnelmark.report import claim_figures

CASCADE = reading.find("cascade")
OFFLOADS = reading.find("wireguard-go-offloads")


def of(
    scale: EffectScale, *terms: tuple[str, str, str, int], low: float | None = 1.0, high: float | None = None
) -> Statement:
    return Statement(tuple((Cell(*names), power) for *names, power in terms), scale, low, high, 1.25)


TCP = of("ratio", ("tcp", "local-1", "WireGuard", 1), ("tcp", "local-1", "OpenVPN", -1))
RESENT = of("difference", ("retransmits", "jumbo", "after", 1), low=None, high=95.0)
MORE_RESENT = of("difference", ("retransmits", "jumbo", "after", 1), ("retransmits", "jumbo", "kernel", -1))
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
        (RESENT, "share of TCP segments that are sent again, cards that split and merge, after", "1.25 %", "≤ 95 %"),
        (
            MORE_RESENT,
            "share of TCP segments that are sent again, cards that split and merge: after − kernel",
            "1.25 points",
            "≥ 1 points",
        ),
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
    source = OFFLOADS if statement in (RESENT, MORE_RESENT) else CASCADE
    assert claim_figures.compared(statement, source) == compared
    assert claim_figures.printed(statement, source) == printed
    assert claim_figures.allowed(statement, source) == allowed


@pytest.mark.parametrize(
    ("low", "high", "allowed"), [(88.7, 108.7, "≥ 88.7 %"), (-0.1, 0.1, "≤ 0.1 %"), (4.0, 9.0, "4 to 9 %")]
)
def test_a_share_is_not_allowed_what_no_share_is(low: float, high: float, allowed: str):
    resent = of("difference", ("retransmits", "jumbo", "after", 1), low=low, high=high)
    more = of(
        "difference", ("retransmits", "jumbo", "after", 1), ("retransmits", "jumbo", "kernel", -1), low=-1, high=200
    )
    assert claim_figures.allowed(resent, OFFLOADS) == allowed
    assert claim_figures.allowed(more, OFFLOADS) == "-1 to 200 points"


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


@pytest.mark.parametrize(("value", "said"), [(1.396, "1.396×"), (0.4049, "0.405×"), (4.0, "4×"), (2.345, "2.35×")])
def test_a_printed_ratio_keeps_the_digits_of_its_share(value, said):
    """As it was read: "39.6 % faster", and next to it "1.4×"."""
    assert claim_figures.printed(replace(TCP, printed=value), CASCADE) == said
