"""What the machine can do, in words, from figures that are made up; and the ciphers of this machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.doctor.capacity import CapacityLook, Chosen, Lateness
from tunnelmark.doctor.performance import Measured, judge, least_delay, verdicts
from tunnelmark.host.wakeups import Wakeups
from tunnelmark.host.yardsticks import Yardsticks
from tunnelmark.model.yardstick_lengths import Length
from tunnelmark.units import Rate

GOOD = Lateness(20_000, 3e-5, 9e-5, 7e-4)
BAD = Lateness(20_000, 5e-4, 3.1e-3, 9e-3)
QUIET = Wakeups(3e-5, 7e-5, 1.3e-3, 0.001)
STICKS = Yardsticks(
    core=1,
    other=0,
    lengths={
        name: Length(value, value, value)
        for name, value in {
            "system call": 95.0,
            "AES-128-GCM": 568.0,
            "ChaCha20-Poly1305": 1195.8,
            "veth": 1840.0,
        }.items()
    },
    absent={"TUN read": "Operation not permitted", "TUN write": "Operation not permitted"},
)
FOUND = Measured(
    direct=CapacityLook(7.02e9, 6e5),
    direct_small=CapacityLook(7.9e7, 155_123.0),
    emulator=CapacityLook(2.1e9, 1.8e5, GOOD),
    emulator_small=CapacityLook(4.9e7, 95_000.0, GOOD),
    busy=CapacityLook(9.4e7, 8e3, GOOD),
    filled=Chosen(Rate.parse("1 Gbit/s"), 7.02e9, True, {}),
    yardsticks=STICKS,
    asleep=QUIET,
    awake=QUIET,
    steal=0.001,
)


def test_a_good_machine_can_do_all_that_is_asked():
    assert {check.state for check in judge(FOUND)} == {"ok"}
    values = {check.name: check.value for check in judge(FOUND)}
    assert values["bare link"] == "7.02 Gbit/s by TCP, 155 000 a second packets of 64 bytes"
    rates, delays, ciphers = verdicts(FOUND)
    assert "good up to 1 Gbit/s" in rates
    assert "good down to 2 ms" in delays
    assert "7.02 Gbit/s" in ciphers


def test_a_bad_one_says_what_not_and_what_instead():
    bad = replace(
        FOUND,
        busy=CapacityLook(9e7, 8e3, BAD, "late"),
        filled=Chosen(Rate.parse("200 Mbit/s"), 7e9, False, {}),
        asleep=replace(QUIET, pause_share=0.03),
        steal=0.03,
    )
    assert {check.name for check in judge(bad) if check.state == "warn"} == {
        "lateness",
        "link filled",
        "wake-ups",
        "steal",
    }
    assert all(check.hint for check in judge(bad) if check.state == "warn")
    rates, delays, _ = verdicts(bad)
    assert "not filled at any rate now" in rates
    assert "below 100 ms late packets would disturb trials" in delays
    assert "--backend vm" in delays


@pytest.mark.parametrize(("late", "delay"), [(9e-5, "2 ms"), (2e-6, "100 us"), (3.1e-3, "100 ms"), (1e-3, "20 ms")])
def test_the_least_delay_is_a_figure_of_which_the_lateness_is_little(late, delay):
    assert str(least_delay(Lateness(1, 0.0, late, late))) == delay


def test_ciphers_are_told_in_bits_of_what_is_encrypted():
    assert FOUND.crypto.chacha == pytest.approx(9.5e9, rel=1e-3)
    assert FOUND.crypto.aes == pytest.approx(2e10, rel=1e-3)
    values = {check.name: check.value for check in judge(FOUND)}
    assert values["ciphers"] == "one core: ChaCha20-Poly1305 9.5 Gbit/s, AES-128-GCM 20 Gbit/s"
    assert values["one core"] == "system call 95 ns, veth 1.84 µs"
