"""Messages that differ only in their numbers are one message, with the range of each number."""

from __future__ import annotations

from tunnelmark.model.attempt import merged_messages


def test_messages_that_differ_in_a_number_are_one_with_its_range() -> None:
    """As it was: "other work took 0.35 cores" for trials in which it took up to 1.27."""
    said = [f"other work took {cores} cores (good up to 0.25)" for cores in ("0.35", "1.27", "0.40")]
    assert merged_messages([*said, "a pause of 12 ms", said[0]]) == [
        ("other work took 0.35 to 1.27 cores (good up to 0.25)", 4),
        ("a pause of 12 ms", 1),
    ]


def test_numbers_are_ordered_as_numbers_and_a_message_may_end_with_one() -> None:
    assert merged_messages(["late by 1,000", "late by 9"]) == [("late by 9 to 1,000", 2)]
    assert merged_messages(["nothing at all"]) == [("nothing at all", 1)]
    assert merged_messages([]) == []


def test_addresses_and_versions_are_no_numbers_that_have_a_range() -> None:
    """As it was: a report of trials that named 10.0.0.1 and 10.0.0.2 could not be written."""
    assert merged_messages(["10.0.0.1 is silent for 2 s"]) == [("10.0.0.1 is silent for 2 s", 1)]
    assert merged_messages(["10.0.0.1 is silent for 2 s", "10.0.0.2 is silent for 9 s"]) == [
        ("… is silent for 2 to 9 s", 2)
    ]
