"""Quantities are read from text with a unit, and written as people write them."""

import pytest

from tunnelmark.units import Duration, Rate, Size, clock


class TestReading:
    @pytest.mark.parametrize(
        ("text", "value"),
        [("1 Gbit/s", 10**9), ("100Mbit/s", 10**8), ("2.5 kbit/s", 2500), (" 7 bit/s ", 7), ("1 mbit/s", 10**6)],
    )
    def test_a_rate_has_decimal_prefixes(self, text, value):
        assert Rate.parse(text) == value

    @pytest.mark.parametrize(
        ("text", "value"),
        [("512 KiB", 524288), ("1 kB", 1000), ("2 MiB", 2097152), ("1200 B", 1200), ("1.5 KiB", 1536)],
    )
    def test_a_size_has_decimal_or_binary_prefixes(self, text, value):
        assert Size.parse(text) == value

    @pytest.mark.parametrize(
        ("text", "value"),
        [("2 s", 2), ("10 ms", 0.01), ("50 us", 5e-5), ("50 µs", 5e-5), ("5 min", 300), ("1 h", 3600)],
    )
    def test_a_duration_is_in_seconds(self, text, value):
        assert Duration.parse(text) == pytest.approx(value)

    @pytest.mark.parametrize("text", ["", "fast", "-1 Mbit/s", "0 Mbit/s", "1e9 bit/s", "1,5 Mbit/s", 5, None, True])
    def test_what_is_no_quantity_is_refused_with_what_would_be_right(self, text):
        with pytest.raises(ValueError, match="should be a rate above zero such as '100 Mbit/s'"):
            Rate.parse(text)

    @pytest.mark.parametrize(("kind", "text"), [(Rate, "0.4 bit/s"), (Size, "0.3 B"), (Rate, "9" * 400 + " bit/s")])
    def test_what_is_rounded_to_nothing_or_beyond_all_bounds_is_refused(self, kind, text):
        with pytest.raises(ValueError, match=r"should be a .* above zero such as '"):
            kind.parse(text)

    @pytest.mark.parametrize("text", ["5", "5 MB", "5 Mbps"])
    def test_another_unit_is_refused_with_the_known_ones(self, text):
        with pytest.raises(ValueError, match="known units are bit/s, kbit/s, Mbit/s, Gbit/s"):
            Rate.parse(text)

    @pytest.mark.parametrize("kind", [Size, Duration])
    def test_every_kind_says_its_own_example(self, kind):
        with pytest.raises(ValueError, match=f"a {kind.__name__.lower()} above zero such as '"):
            kind.parse("-1")


class TestWriting:
    @pytest.mark.parametrize("text", ["1 Gbit/s", "100 Mbit/s", "2.5 Mbit/s", "7 bit/s"])
    def test_a_rate_comes_back_as_it_was_written(self, text):
        assert str(Rate.parse(text)) == text

    @pytest.mark.parametrize("text", ["512 KiB", "1 MiB", "1.2 kB", "100 B"])
    def test_a_size_comes_back_as_it_was_written(self, text):
        assert str(Size.parse(text)) == text

    @pytest.mark.parametrize(("seconds", "text"), [(2, "2 s"), (0.01, "10 ms"), (5e-5, "50 us"), (90, "1 min 30 s")])
    def test_a_duration_takes_the_unit_that_suits_it(self, seconds, text):
        assert str(Duration(seconds)) == text

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (245, "4 min 05 s"), (3720, "1 h 02 min")],
    )
    def test_a_clock_says_time_as_people_do(self, seconds, text):
        assert clock(seconds) == text
