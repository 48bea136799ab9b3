"""Which trials are prepared ahead (whose VPN would not have settled by its turn), and which are tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from tunnelmark import registry
from tunnelmark.lab.client import LabClient
from tunnelmark.model.attempt import Attempt
from tunnelmark.model.grades import Graded
from tunnelmark.model.retries import Retries
from tunnelmark.plan.model import Arm, Link, Plan, Profile, Study, Topology, Trial, WorkloadUse
from tunnelmark.plan.order import again, order
from tunnelmark.run import runner
from tunnelmark.run.runner import RunContext, carry_out
from tunnelmark.units import Duration

PAIR = Topology("pair", "two nodes", ("a", "b"), (Link("link", ("a", "b")),))
PROFILE = Profile("unshaped", "no shaper", "test")


def trials(*arms: str) -> list[Trial]:
    """One trial of two seconds for each arm, in this order."""
    use = WorkloadUse("ping", "ping", {"duration": "2 s"})
    return [Trial(place, 1, Arm(arm, arm), PROFILE, PAIR, use) for place, arm in enumerate(arms)]


def context(convergence_time: float) -> RunContext:
    drivers = dict(registry.vpns())
    drivers["tinc"] = replace(drivers["tinc"], convergence_time=convergence_time)
    return RunContext(drivers, registry.workloads(), 212992)


@pytest.mark.parametrize(
    ("convergence_time", "prepared"),
    [
        (0.0, []),
        (1.0, [1]),  # the next one: at its own turn it would be too late
        (2.0, [1]),
        (3.0, [1, 2]),
        (8.0, [1, 2, 3, 4]),
    ],
)
def test_a_slow_vpn_is_prepared_as_many_seconds_ahead_as_it_needs(convergence_time: float, prepared: list[int]):
    todo = trials("direct", "tinc", "tinc", "tinc", "tinc", "tinc", "tinc")
    assert [trial.position for trial in context(convergence_time).due(todo)] == prepared


def test_others_are_prepared_at_their_turn():
    todo = trials("direct", "nebula", "tinc", "openvpn", "tinc")
    assert [trial.position for trial in context(8.0).due(todo)] == [2, 4]


def test_nothing_is_due_after_the_last_trial():
    assert list(context(8.0).due(trials("tinc"))) == []


class Silent:
    """A collector that counts."""

    def __init__(self) -> None:
        self.ended: list[Attempt] = []
        self.blocks: list[int] = []
        self.added: list[str] = []
        self.grown: list[int] = []

    def begin(self, trial: Trial) -> None:
        pass

    def phase(self, trial: Trial, name: str) -> None:
        pass

    def end(self, attempt: Attempt) -> None:
        self.ended.append(attempt)

    def block(self, attempts: Sequence[Attempt]) -> None:
        self.blocks.append(len(attempts))

    def longer(self, trials: Sequence[Trial]) -> None:
        self.grown.append(len(trials))

    def more(self, trials: Sequence[Trial]) -> None:
        self.added += [trial.id for trial in trials]


class Links:
    """Links of which some are not proved until they were looked at so often again."""

    def __init__(self, looks: int = 0) -> None:
        self.left = looks
        self.halfway_after: list[int] = []
        self.tried = 0

    def trouble(self, trial: Trial) -> str | None:
        self.tried = max(self.tried, trial.block)
        return "the link unshaped was not what it says" if self.left else None

    async def again(self, trial: Trial) -> None:
        self.left -= 1

    async def halfway(self) -> None:
        self.halfway_after.append(self.tried)


class Lab:
    """Stands for the laboratory: says how each attempt ends, by the trial's arm and block and the attempt's number."""

    def __init__(self, ends: Mapping[tuple[str, int, int], str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.ends = ends
        self.made: list[str] = []
        monkeypatch.setattr(runner, "prepare", self.prepare)

    async def prepare(self, labs: LabClient, trial: Trial, parts: object, raw: Path, number: int) -> Made:
        self.made.append(raw.name)
        return Made(trial, number, self.ends.get((trial.arm.name, trial.block, number), "ok"))


@dataclass
class Made:
    trial: Trial
    number: int
    end: str

    async def measure(self) -> Attempt:
        """An attempt that ended as it was told: `ok p99` and `failed p99` are void by one of its metrics."""
        end, _, void = self.end.partition(" ")
        graded = Graded("disturbed", wanting=True) if void else None
        outcome = cast(Any, end)
        return Attempt(self.trial, outcome, "a>b", 0.0, {}, number=self.number, graded=graded)


def study(blocks: int = 2, **more: Any) -> Plan:
    arms = tuple(Arm(name, "direct") for name in ("one", "two", "three", "four"))
    uses = (WorkloadUse("ping", "ping", {"duration": "2 s"}),)
    return order(Study("s", "S", "", 1, blocks, Duration(1), arms, (PROFILE,), (PAIR,), uses, "", **more))


def carried(
    plan: Plan,
    folder: Path,
    links: Links | None = None,
    tries: Mapping[str, Retries] | None = None,
    more: Callable[[Plan], Plan | None] = lambda _: None,
) -> Silent:
    """What a collector saw of a run."""
    listener = Silent()
    kept: list[Attempt] = []
    waits: list[int] = []

    async def calm() -> None:
        waits.append(len(kept))

    asyncio.run(
        carry_out(
            plan,
            context(0.0),
            cast(LabClient, None),
            folder,
            tries=tries or {},
            ready=lambda: None,
            keep=lambda attempt, _: kept.append(attempt),
            listener=listener,
            links=links or Links(),
            calm=calm,
            more=more,
        )
    )
    assert kept == listener.ended
    assert all(not done or kept[done - 1].trial.block <= kept[done].trial.block for done in waits if done < len(kept))
    return listener


def names(attempts: Sequence[Attempt]) -> list[str]:
    return [f"{attempt.trial.block}.{attempt.trial.arm.name}.{attempt.number}" for attempt in attempts]


def test_trials_on_an_unproved_link_are_void_and_not_run(tmp_path: Path):
    todo = Plan(study(1).study, tuple(trials("direct", "tinc")))
    listener = carried(todo, tmp_path, Links(looks=99))
    assert len(listener.ended) == 2
    for attempt in listener.ended:
        assert attempt.outcome == "void"
        assert attempt.failure is not None
        assert (attempt.failure.kind, attempt.failure.message) == (
            "trial-void",
            "the link unshaped was not what it says",
        )
        assert "check-link" in attempt.failure.hint


def test_trials_whose_link_is_proved_at_a_later_look_run_at_the_end_of_their_block(tmp_path: Path, monkeypatch):
    Lab({}, monkeypatch)
    listener = carried(study(2), tmp_path, Links(looks=1))
    assert {attempt.outcome for attempt in listener.ended} == {"ok"}
    assert [attempt.trial.block for attempt in listener.ended] == [1] * 4 + [2] * 4


def test_a_link_is_looked_at_once_more_at_the_end_of_a_block_and_replaces_nothing_while_it_is_not_proved(
    tmp_path: Path,
):
    links = Links(looks=99)
    listener = carried(study(2, replacements=2), tmp_path, links)
    assert len(listener.ended) == 8
    assert not listener.added
    assert links.left == 99 - 2 - 2


def test_what_is_void_is_tried_again_at_the_end_of_its_block_and_a_failure_never(tmp_path: Path, monkeypatch):
    plan = study(2)
    first, second = plan.trials[0].arm.name, plan.trials[1].arm.name
    lab = Lab({(first, 1, 1): "void", (first, 1, 2): "void", (second, 1, 1): "failed"}, monkeypatch)
    listener = carried(plan, tmp_path)
    assert names(listener.ended)[4:6] == [f"1.{first}.2", f"1.{first}.3"]
    assert [attempt.trial.block for attempt in listener.ended[6:]] == [2] * 4
    assert listener.blocks == [4, 4]
    assert f"{plan.trials[0].id}~2" in lab.made
    assert len(set(lab.made)) == len(lab.made) == 10


def test_a_result_that_lacks_one_judged_metric_is_tried_again_too(tmp_path: Path, monkeypatch):
    Lab({("one", 1, 1): "ok p99", ("two", 1, 1): "failed p99"}, monkeypatch)
    ended = names(carried(study(1), tmp_path).ended)
    assert ended[-1] == "1.one.2"
    assert len(ended) == 5, "a failure is a result, whatever the machine did to one of its metrics"


def test_attempts_end_at_their_cap_and_blocks_that_stay_void_are_replaced(tmp_path: Path, monkeypatch):
    void = {("one", 1, number): "void" for number in (1, 2, 3)}
    Lab(void, monkeypatch)
    listener = carried(study(2, replacements=2), tmp_path)
    assert [name for name in names(listener.ended) if name.startswith("1.one")] == ["1.one.1", "1.one.2", "1.one.3"]
    assert len(listener.added) == 4  # one whole block in its place; the second is not needed
    assert [attempt.trial.block for attempt in listener.ended[-4:]] == [3] * 4
    assert [attempt.trial.position for attempt in listener.ended[-4:]] == [8, 9, 10, 11]


def test_a_run_in_which_all_is_void_ends_and_makes_no_more_than_half_as_many_attempts_again(tmp_path, monkeypatch):
    Lab(
        {(arm, block, n): "void" for arm in ("one", "two", "three", "four") for block in range(9) for n in range(9)},
        monkeypatch,
    )
    listener = carried(study(4), tmp_path)
    assert len(listener.ended) == 16 + 8


def test_without_repeats_nothing_is_tried_again(tmp_path: Path, monkeypatch):
    Lab({("one", 1, 1): "void"}, monkeypatch)
    assert len(carried(Plan(study(2).study.unrepeated, study(2).trials), tmp_path).ended) == 8


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch):
    Lab({}, monkeypatch)
    plan = study(2)
    ids = [trial.id for trial in plan.trials]
    tries = {ids[0]: Retries(1, True), ids[1]: Retries(2, False), ids[2]: Retries(3, False)}
    ended = carried(plan, tmp_path, tries=tries).ended
    assert [attempt.trial.id for attempt in ended[:2]] == [ids[3], ids[1]]  # what is new, then what was void
    assert ended[1].number == 3
    assert ids[0] not in [attempt.trial.id for attempt in ended]
    assert ids[2] not in [attempt.trial.id for attempt in ended]  # its attempts are used up
    assert len(ended) == 6


@pytest.mark.parametrize("attempts", [1, 3])
def test_attempts_that_lacked_a_program_use_up_none(attempts, tmp_path: Path, monkeypatch):
    plan = Plan(replace(study(2).study, attempts=attempts), study(2).trials)
    void = {("one", 1, number): "void" for number in (2, 3, 4)}
    Lab(void, monkeypatch)
    ended = carried(plan, tmp_path, tries={trial.id: Retries(1, False, not_begun=1) for trial in plan.trials}).ended
    assert len(ended) == 8 + attempts - 1
    assert (
        names([one for one in ended if one.trial.arm.name == "one" and one.trial.block == 1])[-1]
        == f"1.one.{attempts + 1}"
    )


def test_the_order_of_second_attempts_is_another_shuffle_of_the_same_seed():
    block = study(1).trials
    assert again(study(1).study, block) == again(study(1).study, reversed(block))
    assert again(study(1).study, block) != list(block)


@pytest.mark.parametrize(("blocks", "after"), [(3, []), (4, [2]), (5, [2])])
def test_links_are_looked_at_in_the_middle_of_a_run_of_some_length(blocks, after, tmp_path, monkeypatch):
    links = Links()
    Lab({}, monkeypatch)
    carried(study(blocks), tmp_path, links)
    assert links.halfway_after == after


def up_to(*counts: int) -> Callable[[Plan], Plan | None]:
    """Goes on to each of these numbers of blocks, in turn."""
    left = list(counts)

    def more(plan: Plan) -> Plan | None:
        return order(replace(plan.study, blocks=left.pop(0))) if left else None

    return more


def test_blocks_are_added_until_there_are_enough_in_the_order_of_a_longer_plan(tmp_path: Path, monkeypatch):
    Lab({}, monkeypatch)
    links = Links()
    listener = carried(study(2), tmp_path, links, more=up_to(3, 5))
    assert [attempt.trial for attempt in listener.ended] == list(study(5).trials)
    assert listener.grown == [4, 8]
    assert links.halfway_after == [2, 3]  # a link is looked at before each addition


def test_what_is_void_in_an_added_block_is_tried_again_at_its_end(tmp_path: Path, monkeypatch):
    Lab({("one", 3, 1): "void", ("two", 4, 1): "void"}, monkeypatch)
    ended = names(carried(study(2), tmp_path, more=up_to(4)).ended)
    assert ended.index("3.one.2") == 8 + 4
    assert ended[-1] == "4.two.2"


def test_added_blocks_bring_attempts_of_their_own(tmp_path: Path, monkeypatch):
    void = {(arm, block, n): "void" for arm in ("one", "two", "three", "four") for block in range(9) for n in range(9)}
    Lab(void, monkeypatch)
    assert len(carried(study(2), tmp_path, more=up_to(6)).ended) == 24 + 12  # half as many again as a plan of six


def test_a_run_with_added_blocks_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch):
    Lab({}, monkeypatch)
    plan = study(4)  # two, and two that were added before it was killed
    tries = {trial.id: Retries(1, True) for trial in plan.trials[:10]}
    ended = carried(plan, tmp_path, tries=tries, more=up_to(5)).ended
    assert [attempt.trial for attempt in ended] == list(study(5).trials[10:])
