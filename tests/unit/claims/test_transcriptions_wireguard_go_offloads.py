"""The figures of claims of wireguard-go's offloads, against what the source prints of the same runs in another form."""

from __future__ import annotations

import pytest

from tunnelmark.claims import reading
from tunnelmark.claims.model import Cell

FILE = reading.find("wireguard-go-offloads")

GIBIBYTES = {"no WireGuard": 11.1, "kernel": 3.09, "before": 2.82, "before, MTU 8921": 9.17, "after": 6.24}
"""Transfer in 10 s, which iperf3 prints in units of 2^30 bytes, beside the rate in units of 10^9 bit/s."""

RECEIVED = {"no WireGuard": 9.49, "kernel": 2.64, "before": 2.41, "before, MTU 8921": 7.84, "after": 5.33}
"""The receiver's rate in Gbit/s, over 10.04 or 10.05 s."""

MTUS = {"no WireGuard": 9001, "kernel": 1420, "before": 1420, "before, MTU 8921": 8921, "after": 1420}

PARTS = {  # user and system time in % as far as the print is not cut off, with what it gives as their sum
    "no WireGuard, sender": (0.2, 9.7, 10.0),
    "no WireGuard, receiver": (0.3, 4.4, 4.4),
    "kernel, sender": (0.2, 5.0, 5.2),
    "before, sender": (0.2, 5.5, 5.7),
    "before, MTU 8921, sender": (0.2, 14.4, 14.6),
    "after, sender": (0.1, 9.0, 9.1),
    "after, receiver": (0.0, 0.0, 0.5),
}


def printed(quantity: str, arm: str) -> float:
    return FILE.printed[Cell(quantity, "jumbo", arm)].value


@pytest.mark.parametrize("arm", GIBIBYTES)
def test_the_transfer_in_ten_seconds_is_the_rate(arm: str) -> None:
    rounding = 0.05 if GIBIBYTES[arm] > 10 else 0.005
    least, most = ((GIBIBYTES[arm] + way * rounding) * 2**30 * 8 / 10 / 1e9 for way in (-1, 1))
    assert least - 0.005 <= printed("throughput", arm) <= most + 0.005


@pytest.mark.parametrize("arm", RECEIVED)
def test_the_receiver_s_rate_is_that_of_the_longer_time(arm: str) -> None:
    assert printed("throughput", arm) * 10 / 10.045 == pytest.approx(RECEIVED[arm], abs=0.015)


@pytest.mark.parametrize("arm", MTUS)
def test_a_segment_is_the_mtu_without_headers_and_timestamps(arm: str) -> None:
    assert printed("mss", arm) == MTUS[arm] - 40 - 12


def test_ratios_of_the_text() -> None:
    assert round(printed("throughput", "after") / printed("throughput", "before"), 1) == 2.2
    assert printed("throughput", "before, MTU 8921") / printed("throughput", "before") > 3
    assert 65536 // 1460 == 44
    assert MTUS["before, MTU 8921"] == 9001 - 80


def test_the_parts_of_the_cpu_are_its_sum_where_the_source_agrees_with_itself() -> None:
    """A part larger than a tenth is lost at two receivers, so the receiver's figures prove little."""
    off = {name for name, (user, system, total) in PARTS.items() if abs(user + system - total) > 0.15}
    assert off == {"no WireGuard, receiver", "after, receiver"}
