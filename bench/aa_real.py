"""Real A/A studies: how often direct is called different from itself, with fixed blocks and with the stopping rule.

    .venv/bin/python bench/aa_real.py FOLDER [--times 20] [--first-seed 1] [--way "fixed blocks"]

Each study measures direct twice under two names, and the anchor, for whose ratio the stopping rule waits, on an unshaped link: the
processor bounds it, so that the machine's noise is all in it. At most 5 % may find a difference; of 20, one. FOLDER gets the results; a
study that is there is not measured again, and one that was stopped goes on. Simulated ones, thousands, are in `statistics_bars.py` and `stopping_bars.py`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from scipy.stats import binomtest

from tunnelmark.analyse import judge
from tunnelmark.record import store

TOP = Path(__file__).resolve().parents[1]
STUDY = """
[study]
name = "aa"
title = "Direct against itself"
description = "Direct under two names, and the anchor."
seed = 1
blocks = 5
profiles = ["unshaped"]
topologies = ["pair"]

[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"

[[arm]]
name = "anchor"

[[workload]]
workload = "tcp"
options = { duration = "1 s", warmup = "0.3 s" }
"""
WAYS = {"fixed blocks": (), "until precise": ("--precision", "5%", "--max-blocks", "10")}
ALLOWED = 0.05


def main() -> int:
    """Measure and judge all studies, print what they found; 1 if more of them find a difference than may."""
    parser = argparse.ArgumentParser(prog="bench/aa_real.py")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument(
        "--first-seed", type=int, default=1, help="seed of the first study; each further one has the next"
    )
    parser.add_argument("--way", choices=WAYS, action="append", help="the only ways to take; both if none is named")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    (asked.folder / "aa.toml").write_text(STUDY)
    good = True
    for way in asked.way or WAYS:
        standings, more = [], WAYS[way]
        for seed in range(asked.first_seed, asked.first_seed + asked.times):
            out = asked.folder / f"{way.replace(' ', '-')}.{seed}"
            if not (out / "report.html").exists() and not measured(asked.folder / "aa.toml", out, seed, more):
                print(f"{way}, seed {seed}: not measured", flush=True)
                return 1
            found = judge(store.load(out))
            standings.append(found.same.standing)
            effects = ", ".join(f"{effect:.3f}" for twins in found.same.twins for effect in twins.comparison.effects)
            print(f"{way}, seed {seed}: {found.same.standing}; direct again by block {effects}", flush=True)
        wrong = standings.count("differs")
        share = binomtest(wrong, len(standings)).proportion_ci()
        met = wrong <= max(1, ALLOWED * len(standings))
        good = good and met
        print(
            f"{way}: {wrong} of {len(standings)} found a difference (95 % interval {100 * share.low:.1f} to {100 * share.high:.1f} %), "
            f"{standings.count('agrees')} agreed: {'met' if met else 'NOT MET'}"
        )
    return 0 if good else 1


def measured(study: Path, out: Path, seed: int, more: tuple[str, ...]) -> bool:
    """Whether a study came to an end, with every gate passed or not."""
    code = "import sys; from tunnelmark.cli import main; sys.exit(main())"
    asked = ["--resume", str(out)] if out.exists() else [str(study), "--seed", str(seed), "--out", str(out), *more]
    line = [sys.executable, "-c", code, "run", *asked, "--quiet"]
    environment = os.environ | {"PYTHONPATH": str(TOP / "src")}
    return subprocess.run(line, env=environment, stdout=subprocess.DEVNULL, check=False).returncode in (0, 1)


if __name__ == "__main__":
    sys.exit(main())
