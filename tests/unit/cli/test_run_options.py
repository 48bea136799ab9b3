"""What `run`, `compare` and `repeat` share on their command lines becomes one object, with the same meaning in each."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from tunnelmark.cli import run_options
from tunnelmark.cli.enough_options import Asked
from tunnelmark.cli.run_options import RunOptions, StudyLength
from tunnelmark.plan.enough import Enough
from tunnelmark.units import Share


def stated(*arguments: str, several: bool = False) -> tuple[RunOptions, StudyLength]:
    """What a command with these options is given."""
    found: list[tuple[RunOptions, StudyLength]] = []

    @click.command()
    @run_options.length(blocks="", seed="")
    @run_options.options(several=several)
    def command(options: RunOptions, length: StudyLength) -> None:
        found.append((options, length))

    done = CliRunner().invoke(command, arguments, env={"TUNNELMARK_MEASURE": "", "TUNNELMARK_NO_WAIT": ""})
    assert done.exit_code == 0, done.output
    return found[0]


@pytest.mark.parametrize("several", [False, True])
def test_without_options_nothing_is_changed(several: bool):
    assert stated(several=several) == (RunOptions(), StudyLength())


@pytest.mark.parametrize("several", [False, True])
def test_each_option_is_where_it_is_asked_for(several: bool):
    options, length = stated(
        *("--blocks", "3", "--seed", "9", "--smoke", "--full", "--watch", "cpu", "--watch", "tcp"),
        *("--profile-stacks", "--no-repeat", "--no-wait", "--no-measure"),
        several=several,
    )
    assert length == StudyLength(3, 9, smoke=True, full=True)
    assert options.watched() == ("cpu", "tcp")
    assert (options.profile_stacks, options.repeat, options.wait, options.measure_first) == (True, False, False, False)


def test_one_run_has_a_backend_a_precision_and_json():
    options, _ = stated("--backend", "vm", "--kernel", "6.12", "--precision", "5%", "--json", "--dry-run")
    assert options.placed().guests == ("6.12",)
    assert options.enough.precision == Share.parse("5 %")
    assert options.json and options.dry_run


def test_several_runs_have_none_of_them():
    with pytest.raises(AssertionError, match="No such option"):
        stated("--json", several=True)


def test_what_is_watched_and_repeated_is_a_matter_of_the_study():
    from tunnelmark import registry
    from tunnelmark.plan.files import Files
    from tunnelmark.plan.load import STACKS, load_study

    study = load_study("quick", Files.standard(), registry.catalogue())
    assert RunOptions().of(study) == study
    assert STACKS in RunOptions(profile_stacks=True).of(study).watch
    assert RunOptions(repeat=False).of(study).attempts == 1
    asked = RunOptions(enough=Asked(precision=Share.parse("5 %"))).enough.of(study, blocks_stated=False)
    assert isinstance(asked.enough, Enough)
