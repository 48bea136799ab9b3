"""Whether the statistics keep their promises: simulated studies of a known truth, through the project's own functions.

    .venv/bin/python bench/statistics_bars.py [--quick] [--seed 1]

It prints the bars below with what came out, and ends with 1 when one is not met. (The file is not called `statistics.py`:
as a module beside the other benches it would stand in for Python's own.)

- any false "different" among all pairs, metrics and settings of a study: in at most 5 % of studies;
- all rank ranges of a study right together: in at least 95 %;
- intervals of 95 %: hold the truth in 93 to 97 % (exact ones of signs, in at least 93 %);
- "equal": said of arms that differ by just the margin in at most 5 %;
- twins held to be different, so that nothing is ranked: in 5 %, the exact level of that test in normal samples. Half of all
  simulations come out above an exact level by chance, so this one is missed when Wilson's interval of the share lies beyond.

Worlds that no formula on eight blocks can bear (rare bad trials, one-sided slow-downs) are told beside them and not judged:
docs/limitations.md says what follows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import log

import numpy as np
from _statistics_fast import SETTING, Decided, agree, decide
from _statistics_worlds import NOISES, Array, Drawn, World, draw

from tunnelmark.analyse.intervals import share
from tunnelmark.analyse.margins import equal_within
from tunnelmark.analyse.model import BlockValue, Comparison
from tunnelmark.analyse.pairing import compare
from tunnelmark.record.results import MetricInfo

FALSE, RANKS, EQUAL = 0.05, 0.95, 0.05
COVERED = (0.93, 0.97)

RATIO = MetricInfo("m", "bit/s", "", "higher", "ratio", primary=True)
DELAY = MetricInfo("m", "ms", "", "lower", "difference", primary=True, feels="delay")
LOSS = MetricInfo("m", "%", "", "lower", "difference", primary=True)

WORLDS = (
    World("5 VPNs", 5, studies=600),
    World("5 VPNs, 5 blocks", 5, blocks=5, studies=600),
    World("10 VPNs", 10, studies=500),
    World("10 VPNs, all alike", 10, studies=500, alike=True),
    World("10 VPNs, 15 blocks", 10, blocks=15, studies=200),
    World("20 VPNs", 20, studies=400),
    World("53 VPNs", 53, studies=200),
    World("20 VPNs, all alike", 20, studies=400, alike=True),
    World("10 VPNs, half of them at the ceiling", 10, studies=400, ceiling=True),
    World("10 VPNs, zeros", 10, studies=400, zeros=True),
    World("10 VPNs, losses that are mostly zero", 10, studies=400, losses=True, metrics=1),
    World("10 VPNs, 10 to 20 % of trials missing", 10, studies=400, missing=0.1),
    World("10 VPNs, Laplace", 10, studies=400, noise="laplace"),
    World("10 VPNs, Student 3", 10, studies=400, noise="student 3"),
    World("20 VPNs, Student 3", 20, studies=300, noise="student 3"),
    World("10 VPNs, the machine's speed wanders by 15 %", 10, studies=400, drift=0.15),
    World("10 VPNs, direct scatters by 5 %", 10, studies=400, direct=0.05),
)


@dataclass(frozen=True)
class Bar:
    """One promise in one world: `count` of `total` studies or intervals, and whether the share is within its bounds."""

    promise: str
    world: str
    count: int
    total: int
    least: float
    most: float
    judged: bool = True
    exact: bool = False

    @property
    def met(self) -> bool:
        """Whether the share is within its bounds; where it is exactly its bound by design, as far as the simulation can tell."""
        if self.exact:
            found = share(self.count, self.total)
            return not self.judged or (found.high >= self.least and found.low <= self.most)
        return not self.judged or self.least <= self.count / self.total <= self.most

    def __str__(self) -> str:
        found = share(self.count, self.total)
        bound = (
            f"at most {100 * self.most:.0f} %"
            if not self.least
            else f"{100 * self.least:.0f} to {100 * self.most:.0f} %"
        )
        verdict = ("met" if self.met else "NOT MET") if self.judged else "told, not judged"
        return (
            f"  {self.world:<46} {100 * self.count / self.total:6.1f} % [{100 * found.low:.1f} to {100 * found.high:.1f}] of"
            f" {self.total:<6} {bound:<14} {verdict}"
        )


def false_pairs(world: World, drawn: Drawn, decided: Decided) -> Bar:
    """Studies in which any pair was called different that is alike, or the other way round."""
    wrong = np.zeros(len(decided.differs), dtype=bool)
    for metric, truth in enumerate(drawn.truth):
        true = np.sign(truth[decided.first] - truth[decided.second])
        scored = (true == 0) | (~drawn.unclear[decided.first] & ~drawn.unclear[decided.second])
        wrong |= (decided.differs[:, metric] & (decided.sign[:, metric] != true) & scored).any(axis=1)
    return Bar("any false difference in a study", world.name, int(wrong.sum()), len(wrong), 0.0, FALSE)


def rank_sets(world: World, drawn: Drawn, decided: Decided) -> Bar:
    """Studies in which the range of every VPN by every metric holds its true place."""
    right = np.ones(len(decided.differs), dtype=bool)
    for metric, truth in enumerate(drawn.truth):
        for arm in range(2, world.vpns + 2):
            among = (decided.second != 0) & ((decided.first == arm) | (decided.second == arm))
            mine = np.where(decided.first[among] == arm, 1.0, -1.0)
            won = (decided.differs[:, metric][:, among] & (decided.sign[:, metric][:, among] * mine > 0)).sum(axis=1)
            lost = (decided.differs[:, metric][:, among] & (decided.sign[:, metric][:, among] * mine < 0)).sum(axis=1)
            others = np.delete(truth[2 : world.vpns + 2], arm - 2)
            clear = np.logical_not(np.delete(drawn.unclear[2 : world.vpns + 2], arm - 2)) & (not drawn.unclear[arm])
            above, below = int((others[clear] > truth[arm]).sum()), int((others[clear] < truth[arm]).sum())
            doubtful = int((np.logical_not(clear) & (others != truth[arm])).sum())
            right &= (lost <= above + doubtful) & (won <= below + doubtful)
    return Bar("all rank ranges of a study right together", world.name, int(right.sum()), len(right), RANKS, 1.0)


def power(drawn: Drawn, decided: Decided) -> float:
    """The share of truly different pairs that were called so."""
    found, all_ = 0, 0
    for metric, truth in enumerate(drawn.truth):
        apart = truth[decided.first] != truth[decided.second]
        found += int(decided.differs[:, metric][:, apart].sum())
        all_ += int(apart.sum()) * len(decided.differs)
    return found / max(all_, 1)


def compared(metric: MetricInfo, mine: Array, theirs: Array) -> Comparison:
    """Two arms of one study, by the project's own comparison."""
    values = {
        (name, SETTING, metric.name): tuple(
            BlockValue(block, float(value)) for block, value in enumerate(column) if not np.isnan(value)
        )
        for name, column in (("mine", mine), ("theirs", theirs))
    }
    return compare("mine", "theirs", SETTING, metric, values, 1.0)


def coverage(random: np.random.Generator, studies: int) -> Iterator[Bar]:
    """How often intervals of 95 % hold the true effect."""
    promise = "intervals of 95 % that hold the truth"
    for noise in NOISES:
        for blocks in (3, 5, 8, 15):
            count = studies if blocks <= 8 else studies // 2
            mine = 0.8 * np.exp(0.05 * NOISES[noise](random, (count, blocks)))
            theirs = np.exp(0.001 * random.normal(size=(count, blocks)))
            # Where a doubt has the median told, it is the median that its interval must hold.
            middle = 0.8 * float(np.exp(0.05 * np.median(NOISES[noise](np.random.default_rng(0), (1_000_000,)))))
            found = [compared(RATIO, a, b) for a, b in zip(mine, theirs, strict=True)]
            told = [
                (each.interval, 0.8 if each.doubt is None else middle) for each in found if each.interval is not None
            ]
            held = sum(each.low <= truth <= each.high for each, truth in told)
            yield Bar(
                promise, f"{noise}, {blocks} blocks", held, len(told), *COVERED, judged=noise not in ("slow", "halved")
            )
    mine = np.minimum(
        1.0 + 0.0005 * random.normal(size=(studies, 8)), 0.99 * np.exp(0.03 * random.normal(size=(studies, 8)))
    )
    many = np.minimum(1.0 + 0.0005 * random.normal(size=400_000), 0.99 * np.exp(0.03 * random.normal(size=400_000)))
    truth = float(np.log(many).mean())
    ends = [compared(RATIO, a, np.exp(0.0005 * random.normal(size=8))).interval for a in mine]
    held = sum(each is not None and each.low <= np.exp(truth) <= each.high for each in ends)
    yield Bar(promise, "at the ceiling in a third of the trials", held, studies, *COVERED, judged=False)
    for none in (0.7, 0.9):
        lost = np.where(random.uniform(size=(studies, 8)) < 1 - none, random.exponential(2.0, (studies, 8)), 0.0)
        ends = [compared(LOSS, a, np.zeros(8)).interval for a in lost]
        held = sum(each is not None and each.low <= 0 <= each.high for each in ends)
        yield Bar(promise, f"median of losses, {100 * none:.0f} % of them zero", held, studies, COVERED[0], 1.0)


def equality(random: np.random.Generator, studies: int) -> Iterator[Bar]:
    """How often arms that differ by just the margin are called equal."""
    promise = '"equal" said of arms that differ by the margin'
    bound = log(equal_within(RATIO))
    for noise in NOISES:
        for spread in (0.01, 0.03):
            for blocks in (5, 8):
                mine = np.exp(-bound + spread * NOISES[noise](random, (studies, blocks)))
                theirs = np.exp(0.0005 * random.normal(size=(studies, blocks)))
                wrong = sum(compared(RATIO, a, b).equal for a, b in zip(mine, theirs, strict=True))
                name = f"{noise}, {100 * spread:.0f} %, {blocks} blocks"
                yield Bar(promise, name, wrong, studies, 0.0, EQUAL, noise not in ("slow", "halved"))
    late = 1.0 + equal_within(DELAY) + 0.03 * random.normal(size=(studies, 8))
    wrong = sum(compared(DELAY, a, 1.0 + 0.03 * random.normal(size=8)).equal for a in late)
    yield Bar(promise, "delays that scatter by 30 µs, 8 blocks", wrong, studies, 0.0, EQUAL)
    lost = np.where(random.uniform(size=(studies, 8)) < 0.1, random.exponential(10.0, (studies, 8)), 0.0)
    wrong = sum(compared(LOSS, a, np.zeros(8)).equal for a in lost)
    yield Bar(promise, "10 points lost in one trial of ten", wrong, studies, 0.0, EQUAL, judged=False)


def simulated(seed: int, *, quick: bool) -> Iterator[Bar | str]:
    """Every bar, and what is to be said beside them, in order."""
    shrink = 6 if quick else 1
    for number, world in enumerate(WORLDS):
        if quick and world.vpns > 20:
            world = replace(world, studies=world.studies // 2)
        world = replace(world, studies=max(30, world.studies // shrink))
        random = np.random.default_rng((seed, number))
        drawn = draw(world, random)
        decided = decide(world, drawn)
        yield false_pairs(world, drawn, decided)
        yield rank_sets(world, drawn, decided)
        apart = int(decided.apart.sum())
        yield Bar("twins held to be different", world.name, apart, len(decided.apart), 0.0, FALSE, exact=True)
        yield f"  {world.name}: {100 * power(drawn, decided):.0f} % of the true differences found"
        for study in range(1 if world.vpns > 20 else 3):
            if wrong := agree(world, drawn, decided, study):
                raise SystemExit("the fast decisions are not those of judge(): " + "; ".join(wrong[:5]))
    studies = 4000 // (shrink // 2 or 1)
    yield from coverage(np.random.default_rng((seed, 1000)), studies)
    yield from equality(np.random.default_rng((seed, 1001)), studies)


def main() -> int:
    """Print all bars by promise; 1 if one is not met."""
    return print_bars(simulated, __doc__, "the power that this leaves")


def print_bars(simulate: Callable[..., Iterable[Bar | str]], about: str | None, further: str) -> int:
    """Print the bars of a simulation by promise, as its options ask, then under `further` what else it says; 1 if a bar is not met."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0] if about else "")
    parser.add_argument("--quick", action="store_true", help="a short form, of about a minute")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.process_time()
    bars: dict[str, list[Bar]] = {}
    beside = []
    for found in simulate(asked.seed, quick=asked.quick):
        if isinstance(found, str):
            beside.append(found)
        else:
            bars.setdefault(found.promise, []).append(found)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for promise, those in bars.items():
        print(f"{promise}:", *those, sep="\n")
    print(f"beside them, {further}:", *beside, sep="\n")
    judged = [bar for those in bars.values() for bar in those if bar.judged]
    missed = [bar for bar in judged if not bar.met]
    print(
        f"{len(judged) - len(missed)} of {len(judged)} bars are met, in {time.process_time() - began:.0f} s of CPU time"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
