"""Orders the trials of a study block by block; in each block, the seed shuffles all cells."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from tunnelmark.plan.model import Plan, Study, Trial
from tunnelmark.plan.routes import crossed


def order(study: Study) -> Plan:
    """Return the study with its trials in the order in which they run: in each block, one trial of every cell."""
    trials: list[Trial] = []
    for block in range(1, study.blocks + 1):
        trials += _block(study, block, len(trials))
    return Plan(study, tuple(trials))


def replacement(study: Study, number: int, position: int) -> list[Trial]:
    """Return the trials of replacement block `number` (from 1), as if it followed the last block of the plan.

    `position`: the number of trials in the plan. The positions of the returned trials continue after these trials and
    after those of earlier replacement blocks.
    """
    return _block(study, study.blocks + number, position + (number - 1) * len(study.cells()))


def again(study: Study, trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials in the order in which they are attempted later than the plan says, such as a second time.

    The order is another shuffle by the study's seed, so two trials that follow each other in the plan seldom do here.
    """
    return sorted(trials, key=lambda trial: _rank(study.seed, trial, "again"))


def _block(study: Study, block: int, position: int) -> list[Trial]:
    paths = {(p.name, t.name): crossed(t, p) for p, t in product(study.profiles, study.topologies)}
    drawn = [
        Trial(0, block, arm, profile, topology, use.over(profile, paths[profile.name, topology.name]))
        for arm, profile, topology, use in study.cells()
    ]
    drawn.sort(key=lambda trial: _rank(study.seed, trial))
    return [replace(trial, position=position + place) for place, trial in enumerate(drawn)]


def _rank(seed: int, trial: Trial, more: str = "") -> bytes:
    """Return the key by which trials are sorted in their block, or, with `more`, for their next attempts.

    A hash instead of `random.shuffle`: Python promises the same shuffle for a seed only within one version,
    and a study must have the same order for everyone and forever. The order depends only on these words, so
    an arm that is added leaves the order of the others as it was.
    """
    cell = "/".join((trial.arm.name, trial.profile.name, trial.topology.name, trial.use.name))
    return hashlib.sha256(f"{seed}/{trial.block}/{cell}{more and '/' + more}".encode()).digest()


def link_seed(seed: int, block: int) -> int:
    """Return the seed of emulated links in a block: all arms of a block share the seed, and each block has another."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{block}/link".encode()).digest()[:6], "big")
