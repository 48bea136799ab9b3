"""`--watch` in words: names, `none`, `all`, and what it refuses."""

from __future__ import annotations

import pytest

from tunnelmark.cli.collector_options import chosen
from tunnelmark.errors import UnknownName, UsageError
from tunnelmark.plan.catalogue import Catalogue

CATALOGUE = Catalogue({}, {}, collectors={"cpu": True, "memory": True, "tcp": False})


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), None),
        (("none",), ()),
        (("all",), ("cpu", "memory", "tcp")),
        (("tcp", "cpu", "tcp"), ("tcp", "cpu")),
    ],
)
def test_names_are_chosen(names, expected):
    assert chosen(names, CATALOGUE) == expected


def test_what_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(UnknownName) as caught:
        chosen(("cpus",), CATALOGUE)
    assert "cpu" in caught.value.hint


@pytest.mark.parametrize("names", [("none", "cpu"), ("tcp", "all")])
def test_none_and_all_stand_alone(names):
    with pytest.raises(UsageError, match="cannot be joined with others"):
        chosen(names, CATALOGUE)
