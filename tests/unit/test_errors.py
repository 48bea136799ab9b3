"""The one error tree: complete in its drawing, with exit codes, kinds and hints."""

import inspect

import pytest

from tunnelmark import errors
from tunnelmark.errors import DaemonDied, PlanError, TrialError, TunnelmarkError, UnknownName, nearest

CLASSES = [
    thing
    for _, thing in inspect.getmembers(errors, inspect.isclass)
    if issubclass(thing, TunnelmarkError) and thing.__module__ == errors.__name__
]


def drawn() -> dict[str, tuple[str | None, str]]:
    """Each class in the drawing with its parent there, and its line."""
    found: dict[str, tuple[str | None, str]] = {}
    path: list[str] = []
    for line in inspect.getdoc(errors).splitlines():  # type: ignore[union-attr]
        name = line.lstrip("│├└─ \N{NO-BREAK SPACE}").split(" ")[0]
        if not hasattr(errors, name):
            continue
        depth = line.index(name) // 4
        path = [*path[:depth], name]
        found[name] = (path[depth - 1] if depth else None, line)
    return found


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_is_drawn_under_its_parent(kind):
    parent, _ = drawn()[kind.__name__]
    assert parent == (kind.__base__.__name__ if kind is not TunnelmarkError else None)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_exit_code_is_the_one_that_is_drawn(kind):
    _, line = drawn()[kind.__name__]
    if "exit" in line:
        assert line.endswith(f"exit {kind.exit_code}")
    elif kind is not TunnelmarkError:
        assert kind.exit_code == kind.__base__.exit_code


def test_the_drawing_holds_nothing_else():
    assert set(drawn()) == {kind.__name__ for kind in CLASSES}


def test_a_failed_trial_is_no_wrong_use():
    assert (TrialError.exit_code, TunnelmarkError.exit_code) == (1, 2)


def test_the_kind_is_the_name_as_results_have_it():
    assert DaemonDied("gone").kind == "daemon-died"


def test_an_error_says_what_is_wrong_and_what_to_do():
    error = TunnelmarkError("no tun device", hint="load the module tun")
    assert (str(error), error.message, error.hint) == ("no tun device", "no tun device", "load the module tun")


def test_a_plan_error_says_where():
    assert str(PlanError("a.toml", "arm[2].vpn", "is missing")) == "a.toml: arm[2].vpn: is missing"
    assert str(PlanError("a.toml", "", "is empty")) == "a.toml: is empty"


def test_an_unknown_name_gives_the_nearest():
    error = UnknownName("VPN", "wiregard", ["wireguard-go", "tinc"])
    assert error.message == "there is no VPN called 'wiregard'"
    assert error.hint == "did you mean wireguard-go?"


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("TINC", ["tinc", "nebula"], "did you mean tinc?"),
        ("zzz", ["tinc", "nebula"], "known: tinc, nebula"),
        ("zzz", [], "none is known"),
    ],
)
def test_far_names_give_all(name, known, hint):
    assert nearest(name, known) == hint


def test_an_error_of_another_process_keeps_its_words_also_where_it_is_made_in_another_way():
    one = errors.UnknownName("study", "quik", ["quick"])
    again = errors.again(errors.plain(one))
    assert (type(again), again.message, again.hint) == (errors.LabError, one.message, one.hint)
    full = errors.again(errors.plain(errors.DiskFull("no space", hint="free some")))
    assert (type(full), full.message, full.hint) == (errors.DiskFull, "no space", "free some")
