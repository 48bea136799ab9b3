"""By whose doing packets were late: said where a pause of the machine explains some of it."""

from tunnelmark.model import emulator_health


def direction(own_p99: float | None, own_max: float = 0.0):
    said = {"lateness_us": {"count": 9, "p50": 10.0, "p99": 4000.0, "max": 30_000.0}}
    return said | ({} if own_p99 is None else {"own_lateness_us": {"count": 9, "p99": own_p99, "max": own_max}})


def test_what_the_machine_did_is_told_from_the_emulators_own():
    assert emulator_health.whose(direction(80.0, 2500.0)) == (
        "; without the machine's pauses 0.08 ms for 99 %, at worst 2.50 ms"
    )


def test_nothing_is_said_where_no_pause_explains_anything_or_none_was_seen():
    assert emulator_health.whose(direction(None)) == ""
    assert emulator_health.whose(direction(4000.0, 30_000.0)) == ""
