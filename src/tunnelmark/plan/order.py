"""The order of a study's trials: block by block, each block a shuffle of all cells that its seed decides."""

from __future__ import annotations

import hashlib
from itertools import product

from tunnelmark.plan.model import Plan, Study, Trial


def order(study: Study) -> Plan:
    """The study with its trials, one of every cell a block, in the order in which they run."""
    trials: list[Trial] = []
    cells = list(product(study.arms, study.profiles, study.topologies, study.workloads))
    for block in range(1, study.blocks + 1):
        drawn = [
            Trial(0, block, arm, profile, topology, use.over(profile.rate)) for arm, profile, topology, use in cells
        ]
        drawn.sort(key=lambda trial: _rank(study.seed, trial))
        for trial in drawn:
            position = len(trials)
            trials.append(Trial(position, block, trial.arm, trial.profile, trial.topology, trial.use))
    return Plan(study, tuple(trials))


def _rank(seed: int, trial: Trial) -> bytes:
    """Where the trial comes in its block.

    A hash instead of `random.shuffle`: Python promises the same shuffle for a seed only within one version,
    and a study must have the same order for everybody and for ever. It depends on nothing but these words, so
    an arm that is added leaves the order of the others as it was.
    """
    cell = "/".join((trial.arm.name, trial.profile.name, trial.topology.name, trial.use.name))
    return hashlib.sha256(f"{seed}/{trial.block}/{cell}".encode()).digest()
