"""Checks that a run's links can be made, and that the links do to packets what their profiles say.

A look measures a bare link once, and compares it with its profile. There are looks before, during and after the trials.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tunnelmark.errors import LabError, MissingPart, UsageError
from tunnelmark.host import kernel_features
from tunnelmark.host.programs import sha256
from tunnelmark.lab import emulator
from tunnelmark.lab.backends import backend_of, describe
from tunnelmark.lab.labs import Labs
from tunnelmark.model.probe_plan import enough, pace_of
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Plan, Profile, Topology, Trial
from tunnelmark.plan.order import link_seed
from tunnelmark.record import store
from tunnelmark.record.journal import Journal
from tunnelmark.record.link_check import LinkCheck, When
from tunnelmark.record.results import RAW
from tunnelmark.run.link_observation import observe

LOOKS = 3
"""The most looks at a link in each check; the check ends earlier if one finds the link inside its tolerance."""

LATER = 3
"""The most further looks at a link that is not verified. They are made at the ends of blocks."""

PAUSE = 3.0
"""Seconds before the second look; the third waits twice as long."""

_INTERVAL = 0.001  # seconds between two probes


def require(profiles: Iterable[Profile]) -> None:
    """Raise MissingPart if a profile needs the emulator, or the kernel's netem, and it is missing."""
    needed = {backend_of(profile) for profile in profiles}
    if "emulator" in needed:
        emulator.program()
    if "netem" in needed and (why := kernel_features.found()["netem"]):
        raise MissingPart(
            f"this kernel has no netem ({why})",
            hint="modprobe sch_netem; or use a virtual machine that has it: --backend vm; or leave the profile's backend "
            "out: model = 'netem' is enough",
        )


def require_rates(profiles: Iterable[Profile], searching: Sequence[str]) -> None:
    """Raise UsageError if workloads search for the highest rate of a link, and an emulated link has no rate.

    `searching`: the names of the study's workloads that search. On such a link, a search would find the limit of the
    emulator on this machine at this moment, where it loses packets.
    """
    free = [
        one.name
        for one in profiles
        if backend_of(one) == "emulator" and one.auto is None and not any(map(_bounded, (one.forward, one.back)))
    ]
    if free and searching:
        raise UsageError(
            f"{' and '.join(searching)} looks for the most that a link carries, and {free[0]} has no rate: it would find "
            "the limit of the emulator on this machine, and not that of the link",
            hint=f"join a rate: {free[0]}+fast-ethernet",
        )


def _bounded(way: Direction) -> bool:
    return way.rate is not None or way.rate_trace is not None


def record(profiles: Iterable[Profile]) -> dict[str, Any]:
    """Return how each link is made, and the emulator's path and hash if one is used, for the recorded environment."""
    profiles = tuple(profiles)
    found: dict[str, Any] = {"shaper": {profile.name: describe(profile) for profile in profiles}}
    if any(backend_of(profile) == "emulator" for profile in profiles):
        program = emulator.program()
        found["emulator"] = {"path": str(program), "sha256": sha256(program)}
    return found


class RunLinks:
    """The links of a run under way: looks at them, records every look, and knows which links are not verified.

    If a look finds a link outside of its tolerance, a second look follows some seconds later, because the machine may
    have disturbed the first look. All looks at a link have the same seed, so what is wrong with a link is wrong in
    every look (`analyse.link_gate.standing`).
    """

    def __init__(
        self,
        plan: Plan,
        labs: Labs,
        folder: Path,
        journal: Journal,
        console: Console,
        calm: Callable[[], Awaitable[None]],
        *,
        scratch: Path | None = None,
        looks: int = LOOKS,
        watching: Callable[[str], object] = lambda _: None,
    ) -> None:
        """With `scratch`, raw output is written there first, then moved. `watching` is called before looks."""
        self._plan, self._labs, self._folder, self._journal = plan, labs, folder, journal
        self._console, self._calm, self._scratch, self._looks = console, calm, scratch, looks
        self._watching = watching
        self._outside: dict[tuple[str, str], str] = {}
        self._seen: dict[tuple[str, str, str, int], list[LinkCheck]] = {}
        self._rounds: Counter[When] = Counter()
        self._failed: dict[tuple[str, str], When] = {}  # by link that is outside: when it was looked at
        self._later: dict[tuple[str, str], int] = {}

    def trouble(self, trial: Trial) -> str | None:
        """Return why a trial's link is outside of its tolerance; None if it is verified, or has not been looked at."""
        return self._outside.get((trial.profile.name, self._shown_by(trial.topology).name))

    async def again(self, trial: Trial) -> None:
        """Look again at the trial's link if it is not verified, up to `LATER` times in a run; never if `looks` is 1."""
        topology = self._shown_by(trial.topology)
        key = trial.profile.name, topology.name
        if key in self._outside and self._later.get(key, 0) < LATER * (self._looks > 1):
            self._later[key] = self._later.get(key, 0) + 1
            await self._calm()
            self._watching(f"looking again at the link {trial.profile.name}, {topology.name}")
            await self._look(trial.profile, topology, self._failed[key])

    async def halfway(self) -> None:
        """Look at each link in the middle of the run.

        Without this look, a change of the machine would be seen only at the end, when it may have affected many trials.
        """
        await self.verify("during")

    async def verify(self, when: When) -> None:
        """Look at the link of each profile and topology that has trials, up to `looks` times until it is verified.

        A link that no look verifies is reported at once.
        """
        self._rounds[when] += 1
        shown = ((profile, self._shown_by(topology)) for _, profile, topology, _ in self._plan.study.cells())
        for profile, topology in {
            (profile.name, topology.name): (profile, topology) for profile, topology in shown
        }.values():
            self._watching(f"looking at the link {profile.name}, {topology.name}")
            for number in range(1, self._looks + 1):
                if (found := await self._look(profile, topology, when)) is None:
                    break
                where = f"{profile.name} · {topology.name}: the link is not what it says: {found}"
                if number < self._looks:
                    self._say(
                        f"looking again ({number + 1} of {self._looks}) in {PAUSE * number:.0f} s: {where}", "yellow"
                    )
                    await asyncio.sleep(PAUSE * number)
                    await self._calm()
                else:
                    self._say(f"void: {where}", "red")

    def _shown_by(self, topology: Topology) -> Topology:
        """Return the study's first topology with the same probed link: those that differ only in routers share one."""
        return next(each for each in self._plan.study.topologies if each.probed.links == topology.probed.links)

    async def _look(self, profile: Profile, topology: Topology, when: When) -> str | None:
        """Look once, and record the look. Return what is outside by all looks so far; None if the link is verified."""
        from tunnelmark.analyse import link_gate
        from tunnelmark.analyse.link import judge
        from tunnelmark.analyse.link import path as linkpath

        raw = _free(self._folder / RAW, f"link.{when}.{profile.name}.{topology.name}")
        pace = None if profile.only_shaped else pace_of(profile, enough(profile), _INTERVAL)
        written = raw if self._scratch is None else self._scratch / raw.name
        nodes = len(topology.probed.links[0].nodes)
        seed = linkpath.telling_seed(profile, pace, nodes, link_seed(self._plan.study.seed, 0))
        begun = time.time()
        try:
            seen = await observe(self._labs, topology, profile, pace, written, seed=seed)
            check = judge.judge(profile, seen, when)
        except LabError as error:  # such as a prober that got no processor in time: only this look has failed
            await self._labs.check()
            took = time.time() - begun
            check = LinkCheck(profile.name, topology.name, when, begun, took, "outside", error.message, ())
        if written != raw:
            store.adopt(written, self._folder)
        raw.mkdir(exist_ok=True)
        kept = tuple(f"{RAW}/{raw.name}/{file.name}" for file in sorted(raw.iterdir()))
        check = replace(check, raw=kept, round=self._rounds[when])
        store.keep_link_check(self._journal, check)
        looks = self._seen.setdefault((profile.name, topology.name, when, check.round), [])
        looks.append(check)
        link = profile.name, topology.name
        self._outside.pop(link, None)
        if (found := link_gate.standing(looks)) is not None:
            self._outside[link], self._failed[link] = link_gate.reason(looks), when
        return found

    def _say(self, text: str, style: str) -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)


def _free(folder: Path, name: str) -> Path:
    """Return the path of a folder that does not exist yet: a resumed run looks again."""
    return next(path for number in range(1, 1000) if not (path := folder / f"{name}.{number}").exists())
