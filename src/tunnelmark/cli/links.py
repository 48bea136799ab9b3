"""The links of a run: what carries them must be there, they are proved before and after the trials, and recorded."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from tunnelmark.errors import MissingPart
from tunnelmark.lab import probes, wire
from tunnelmark.lab.backends import backend_of, describe
from tunnelmark.lab.lab import Keeper
from tunnelmark.lab.programs import sha256
from tunnelmark.plan.model import Plan, Profile
from tunnelmark.record import store
from tunnelmark.record.journal import Journal
from tunnelmark.record.results import RAW, LinkProof
from tunnelmark.run.loop import link_seed
from tunnelmark.run.probes import pace_of
from tunnelmark.run.prove import observe

_PROBES, _INTERVAL = 1500, 0.001  # each way, and seconds between two: a short look, for `prove-link` looks longer


def require(profiles: Iterable[Profile]) -> None:
    """MissingPart if a profile needs the emulator, or the kernel's netem, and it is not there."""
    needed = {backend_of(profile) for profile in profiles}
    if "wire" in needed:
        wire.program()
    if "netem" in needed and (why := probes.found()["netem"]):
        raise MissingPart(
            f"this kernel has no netem ({why})",
            hint="modprobe sch_netem; or use a virtual machine that has it: --backend vm; or leave the profile's backend "
            "out: model = 'netem' is enough",
        )


def record(profiles: Iterable[Profile]) -> dict[str, Any]:
    """How each link is made, and by which emulator, for the environment."""
    profiles = tuple(profiles)
    found: dict[str, Any] = {"shaper": {profile.name: describe(profile) for profile in profiles}}
    if any(backend_of(profile) == "wire" for profile in profiles):
        program = wire.program()
        found["emulator"] = {"path": str(program), "sha256": sha256(program)}
    return found


async def prove(
    plan: Plan,
    keeper: Keeper,
    folder: Path,
    journal: Journal,
    when: Literal["before", "after"],
    console: Console,
    scratch: Path | None = None,
) -> tuple[LinkProof, ...]:
    """Look at each profile on each topology and keep what is found; a link outside of its tolerance is told at once.

    With `scratch` the raw output is written there first, and moved when it is complete.
    """
    from tunnelmark.analyse import link  # takes scipy with it, which a dry run should not wait for

    proofs = []
    for profile, topology in product(plan.study.profiles, plan.study.topologies):
        raw = _free(folder / RAW, f"link.{when}.{profile.name}.{topology.name}")
        pace = None if profile.only_shaped else pace_of(profile, _PROBES, _INTERVAL)
        written = raw if scratch is None else scratch / raw.name
        seen = await observe(keeper, topology, profile, pace, written, seed=link_seed(plan.study.seed, 0))
        if written != raw:
            store.adopt(written, folder)
        kept = tuple(f"{RAW}/{raw.name}/{file.name}" for file in sorted(raw.iterdir()))
        proof = link.judge(profile, seen, when, kept)
        store.keep_proof(journal, proof)
        proofs.append(proof)
        if proof.verdict == "outside":
            said = f"void: {profile.name} · {topology.name}: the link is not what it says: {proof.reason}"
            console.print(Text(said, style="red"), soft_wrap=True)
    return tuple(proofs)


def _free(folder: Path, name: str) -> Path:
    """A folder that is not there yet: a run that is resumed looks again."""
    return next(path for number in range(1, 1000) if not (path := folder / f"{name}.{number}").exists())
