"""Measures the machine before a study: fixes rates that profiles leave to the machine, and tests links.

A profile leaves its rate to the machine by `rate = "auto"`. A link that the machine cannot carry is reported. The
measurements take some seconds the first time. The results are valid for some hours (`doctor.cache`), and are recorded
in environment.json. If the nodes run on other hosts, these are measured before each study, because their load is not
known here.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import click
from rich.console import Console

from tunnelmark.cli import real_hosts
from tunnelmark.doctor import capacity
from tunnelmark.doctor.cache import MeasurementCache
from tunnelmark.errors import TunnelmarkError, UsageError
from tunnelmark.host import keep_awake, wakeups
from tunnelmark.lab.labs import Labs
from tunnelmark.lab.ssh.inventory import Inventory
from tunnelmark.plan.auto import Fixed
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import fix, load_profile
from tunnelmark.plan.model import Profile, Study, Topology
from tunnelmark.run.link_capacity import Fitness, StudyLoad, examine, load_of
from tunnelmark.run.runner import RunContext
from tunnelmark.units import Rate
from tunnelmark.workloads.base import Workload

VARIABLE = "TUNNELMARK_MEASURE"
"""Environment variable; `no` means that nothing is measured before a study."""

_WAKEUPS = 1.0  # seconds of measuring wake-ups on each core
_FAST_ETHERNET = 100_000_000  # bit/s of the profile of that name
_Command = TypeVar("_Command", bound=Callable[..., Any])


def option(command: _Command) -> _Command:
    """Add `--measure/--no-measure` to a command."""
    return click.option(
        "--measure/--no-measure",
        "measure_first",
        default=True,
        envvar=VARIABLE,
        help="First check whether this machine can carry the study's links; takes some seconds, valid for hours [--measure].",
    )(command)


def rate_option(command: _Command) -> _Command:
    """Add `--rate` to a command: the meaning of a profile's `rate = "auto"`, in place of a measurement."""
    return click.option(
        "--rate",
        metavar="RATE",
        callback=_rate,
        help="The rate of links whose profile leaves it to the machine, such as '500 Mbit/s' [measured].",
    )(command)


def _rate(_context: click.Context, _option: click.Parameter, text: str | None) -> Rate | None:
    try:
        return None if text is None else Rate.parse(text)
    except ValueError as error:
        raise UsageError(f"--rate {text}: {error}", hint="such as '500 Mbit/s'") from error


def stated(study: Study, rate: Rate | None) -> Study:
    """Return the study with this rate for every profile with `rate = "auto"`; unchanged if `rate` is None.

    UsageError if the study has none of these profiles, or if the rate is above the bound that one of them states.
    """
    if rate is None:
        return study
    open_ = {profile.name: profile.auto for profile in study.profiles if profile.auto is not None}
    if not open_:
        raise UsageError(
            f"every profile of the study {study.name} has a rate of its own, or none",
            hint='leave --rate out, or choose a profile with `rate = "auto"`, such as --profile auto',
        )
    for name, bound in open_.items():
        if rate > bound:
            raise UsageError(
                f"--rate {rate} is above what the profile {name} allows: at most {bound}",
                hint=f"--rate '{bound}', or less",
            )
    return fix(study, dict.fromkeys(open_, Fixed(rate, "stated by --rate")))


def before(
    study: Study, context: RunContext, console: Console, *, look: bool, on: Inventory | None = None
) -> tuple[Study, dict[str, Any]]:
    """Measure the machine, or the hosts `on`; return the study with every `rate = "auto"` fixed, and the measurements.

    The measurements are for the record of the environment; {} if none was needed. With `look`, each link is tried, and
    a warning names each link that the machine does not carry. UsageError if it carries none of them in real time.
    """
    open_ = [profile for profile in study.profiles if profile.auto is not None]
    if not look and not open_:
        return study, {}
    doing = f"measuring what {'this machine carries' if on is None else 'these hosts carry'} (--no-measure skips this)"
    if not console.is_terminal:
        console.print(doing, soft_wrap=True)
    with console.status(doing):
        found = asyncio.run(_measure(study, context.workloads, open_, look, on))
    fixed = fix(study, found.rates)
    for profile in fixed.profiles:
        if profile.name in found.rates:
            console.print(
                f"  rate       {profile.name}: {profile.rate}; {found.rates[profile.name].because}", soft_wrap=True
            )
    if found.wakeups is not None:
        console.print(f"  machine    {said(found.wakeups)}", soft_wrap=True)
    _tell(fixed, found.links, console, who="this machine does" if on is None else "these hosts do")
    return fixed, found.plain()


@dataclass(frozen=True, slots=True)
class _Found:
    """The measurements: cores busy with other work (None if unknown), wake-ups, rates for `auto`, each tried link."""

    busy: float | None
    wakeups: wakeups.Wakeups | None
    rates: Mapping[str, Fixed]
    links: Sequence[Fitness]

    def plain(self) -> dict[str, Any]:
        rates = {name: {"rate": int(each.rate), "because": each.because} for name, each in self.rates.items()}
        links = {fit.profile: fit.plain() for fit in self.links}
        return {
            "busy": self.busy,
            "wakeups": asdict(self.wakeups) if self.wakeups else None,
            "rates": rates,
            "links": links,
        }


async def _measure(
    study: Study, workloads: Mapping[str, Workload[Any]], open_: list[Profile], look: bool, on: Inventory | None
) -> _Found:
    known, topology, links = MeasurementCache.here() if on is None else None, study.topologies[0], []
    woken = await asyncio.to_thread(_woken, known) if look and known is not None else None
    async with real_hosts.labs(on, node_cores=study.cores) as labs:
        rates = {profile.name: await rate_of(labs, known, topology, profile) for profile in open_}
        if look:
            for profile in (profile for profile in study.profiles if profile.auto is None):
                load = load_of(study, workloads, profile)
                links.append(await _fitness(labs, known, topology, profile, load))
    return _Found(known.busy if known is not None else None, woken, rates, links)


async def rate_of(labs: Labs, known: MeasurementCache | None, topology: Topology, profile: Profile) -> Fixed:
    """Return the rate that a profile's `auto` means on this machine or the labs' hosts: measured or from the cache."""
    name = f"rate {_mark(profile, topology, labs.node_cores)}"
    if known is not None and (kept := known.get(name)) is not None:
        return Fixed(Rate(kept["rate"]), kept["because"])
    chosen = await capacity.choose(labs, topology, profile)
    made = Fixed(chosen.rate, capacity.reason(chosen, profile, whose="this machine" if labs.here else "these hosts"))
    if chosen.holds and known is not None:
        known.put(name, {"rate": int(made.rate), "because": made.because})
    return made


async def closed(labs: Labs, profile: Profile, topology: Topology, files: Files) -> Profile:
    """Return the profile with the rate that its `auto` means on the labs' machines; unchanged if it has no `auto`.

    `files`: the folders in which the profile is read again, by its name.
    """
    if profile.auto is None:
        return profile
    known = MeasurementCache.here() if labs.here else None
    return load_profile(profile.name, files, await rate_of(labs, known, topology, profile))


def closed_now(profile: Profile, topology: Topology, files: Files, on: Inventory | None = None) -> Profile:
    """Return the profile as `closed` does, after a measurement in new labs: on this machine, or on the hosts `on`."""

    async def measure() -> Profile:
        async with real_hosts.labs(on) as labs:
            return await closed(labs, profile, topology, files)

    return profile if profile.auto is None else asyncio.run(measure())


async def _fitness(
    labs: Labs, known: MeasurementCache | None, topology: Topology, profile: Profile, load: StudyLoad
) -> Fitness:
    """Return how a link fits this machine. Only a good result is cached: the machine may be quiet the next time."""
    name = f"link {_mark(profile, topology, labs.node_cores)} {load}"
    if known is not None and (kept := known.get(name)) is not None:
        return Fitness(profile.name, kept["state"], kept["said"])
    found = await examine(labs, topology, profile, load)
    if found.state == "fits" and known is not None:
        known.put(name, found.plain())
    return found


def _woken(known: MeasurementCache) -> wakeups.Wakeups | None:
    """Return how late the machine wakes programs; None if it cannot be measured: a study does not depend on it."""
    if (kept := known.get("wakeups")) is not None:
        return wakeups.Wakeups(**kept)
    try:
        found = wakeups.measure(_WAKEUPS, awake=keep_awake.unwanted() is None)  # as the study will have it
    except (TunnelmarkError, OSError):
        return None
    known.put("wakeups", asdict(found))
    return found


def _mark(profile: Profile, topology: Topology, node_cores: int) -> str:
    """Return a link's name in the cache: another setting of the link, or number of cores per node, changes it."""
    kinds = (profile.model, profile.unit, profile.backend, profile.place, profile.card)
    said = (profile.forward, profile.back, *kinds, topology.links, node_cores)
    return f"{profile.name} {topology.name} {hashlib.sha256(repr(said).encode()).hexdigest()[:12]}"


def said(woken: wakeups.Wakeups) -> str:
    """Describe in words how late the machine wakes programs."""
    return (
        f"wakes {1e6 * woken.p50:.0f} us late in the median, {1e3 * woken.p99:.2f} ms once in a hundred times, at most "
        f"{1e3 * woken.longest:.1f} ms; paused for {100 * woken.pause_share:.1f} % of the time"
    )


_ENDS = {
    "short": "results will say more about the machine than about the arms",
    "late": "metrics that this affects will be disturbed, or void",
    "drops": "trials on it will be void",
}


def _tell(study: Study, found: Sequence[Fitness], console: Console, who: str = "this machine does") -> None:
    """Print a warning for each link that the machine does not carry; UsageError if it carries none in real time."""
    bad = [fit for fit in found if fit.state != "fits"]
    profiles = {profile.name: profile for profile in study.profiles}
    if bad and len(bad) == len(study.profiles) and all(fit.state == "drops" for fit in bad):
        raise UsageError(
            f"{who} not carry " + "; nor ".join(f"{fit.profile}: {fit.said}" for fit in bad),
            hint=f"{instead(bad[0], profiles[bad[0].profile])}; --no-measure runs it anyway",
        )
    for fit in bad:
        end = _ENDS[fit.state]
        console.print(
            f"[yellow]warning:[/] {fit.profile}: {fit.said}; {end}. What fits: {instead(fit, profiles[fit.profile])}",
            soft_wrap=True,
        )


def instead(fit: Fitness, profile: Profile) -> str:
    """Return a text that suggests settings for a link that the machine could not carry, joined with "; or ".

    `fit`: the result of a test that the link did not pass. If a lower rate passed the test, it comes first. If TCP did
    not fill the link, and filled it at no lower rate that was tried, the text says what may be in the way.
    """
    offers, held = [], "filled" if fit.state == "short" else "in time"
    if fit.instead is not None:
        joined = profile.rate is None and fit.instead == _FAST_ETHERNET
        offers.append(
            f"{held} here: " + (f"{profile.name}+fast-ethernet" if joined else f'rate = "{fit.instead}" in the profile')
        )
        if fit.state == "short":
            offers.append("--profile auto, which chooses such a rate by itself")
    if fit.state != "short":
        offers.append("try a quieter moment (`tunnelmark doctor --measure` shows it)")
        offers.append("--backend vm, whose clock counts instructions, so that no pause disturbs it")
    elif not offers:
        offers.append(
            "no lower rate was filled either: other work, or the machine's host, is in the way; see `tunnelmark doctor --measure`"
        )
    return "; or ".join(offers)
