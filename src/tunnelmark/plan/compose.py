"""Composes the text of study files from a few names, for `tunnelmark compare`, `ab` and `traversal`."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement

from tunnelmark.errors import UnknownName, UsageError
from tunnelmark.plan import composed_workloads
from tunnelmark.plan.catalogue import Catalogue
from tunnelmark.plan.composed_workloads import ComposedWorkload
from tunnelmark.plan.files import Files
from tunnelmark.plan.model import Cascade
from tunnelmark.plan.profiles import JOIN
from tunnelmark.plan.routers import ALL_KINDS
from tunnelmark.plan.study_arms import ANCHOR, DIRECT, NEW, OLD, OLD_AGAIN

TRAVERSAL = "traversal"
"""The name of the workload that reports which path a VPN finds, and of the study that runs it."""

YARDSTICK = "anchor-chacha20"
"""The anchor of a comparison. It encrypts, as almost every VPN does, so that its cost contains this common cost."""

_NO_MARKUP = str.maketrans("[]", "()")  # a terminal would take a path with these for markup

_CASCADES: Mapping[Cascade, str] = {"series": " on each link in series", "nested": " nested along the chain"}
"""What the title of a comparison says, after the names of its VPNs, about how these are placed."""


def comparison(
    vpns: Sequence[str],
    files: Files,
    catalogue: Catalogue,
    *,
    profiles: Sequence[str] = ("gigabit",),
    topology: str = "pair",
    workloads: Sequence[str] = ("ping", "tcp", "udp"),
    blocks: int = 8,
    seed: int = 1,
    normalised: bool = False,
    cores: int = 1,
    anchor: bool = True,
    cascade: Cascade | None = None,
    behind_gateways: bool = False,
) -> str:
    """Return the TOML text of a study that compares VPNs, as shipped, with direct and each other, over each profile.

    Direct and the first VPN are in the study twice, as A/A pairs. `normalised`: every arm has the same inner MTU and
    queue. `cores`: how many cores each node has. `anchor`: add our reference tunnel, unless one is in `vpns`.
    `cascade`: each VPN runs as such a cascade. `behind_gateways`: each VPN joins two gateways. The anchor can do
    neither of these, so it is left out then.

    UnknownName if a name does not exist, UsageError if there is nothing to compare.
    """
    arms = [vpn for vpn in dict.fromkeys(vpns) if vpn != DIRECT]
    if not arms:
        raise UsageError("there is no VPN to compare", hint="name one or more, see `tunnelmark list vpns`")
    if not workloads:
        raise UsageError("there is no workload to compare with", hint="see `tunnelmark list workloads`")
    _check("VPN", arms, catalogue.arms)
    _check("workload", workloads, catalogue.workloads)
    _find(files, profiles, topology)
    more: dict[str, int] = {"cores": cores} if cores != 1 else {}
    own = [arm for arm in arms if arm == ANCHOR or catalogue.variants.get(arm, ("",))[0] == ANCHOR]
    placed = ({"cascade": cascade} if cascade else {}) | ({"behind_gateways": True} if behind_gateways else {})
    yardstick = [YARDSTICK] if anchor and not own and not placed and YARDSTICK in catalogue.arms else []
    same: dict[str, str | bool] = {"normalised": True} if normalised else {}
    of_vpns = same | placed
    tables = [
        _table(
            "[study]",
            name="compare",
            title=f"{', '.join(arms)}{_CASCADES[cascade] if cascade else ''}{' between gateways' if behind_gateways else ''} and the bare link",
            description="Written by `tunnelmark compare`.",
            seed=seed,
            blocks=blocks,
            **more,
            profiles=list(dict.fromkeys(profiles)),
            topologies=[topology],
        ),
        _table("[[arm]]", name=DIRECT, **same),
        _table("[[arm]]", name=f"{DIRECT}-again", same_as=DIRECT),
        *(_table("[[arm]]", name=arm, **of_vpns) for arm in [*yardstick, *arms]),
        # The noise of the bare link says little about that of a VPN, which the processor limits, not the link.
        *(_table("[[arm]]", name=f"{arm}-again", same_as=arm) for arm in [arm for arm in arms if arm not in own][:1]),
        *(_workload(each) for each in composed_workloads.usual(workloads, profiles, files)),
    ]
    return "\n".join(tables)


def two_builds(
    vpn: str,
    old: Mapping[str, str],
    new: Mapping[str, str],
    files: Files,
    catalogue: Catalogue,
    *,
    labels: tuple[str, str],
    profiles: Sequence[str],
    topology: str = "pair",
    workloads: Sequence[ComposedWorkload] = (ComposedWorkload("tcp"),),
    blocks: int = 8,
    seed: int = 1,
) -> str:
    """Return the TOML text of a study of two builds of one VPN, the arms `old` and `new`.

    `old`, `new`: the paths of each build's programs, by name. `labels`: the titles of the old and the new build. The
    old build is in the study twice, as an A/A pair: the difference between these two is noise.
    UnknownName if a name does not exist, UsageError if `vpn` is the bare link, which has no builds.
    """
    _check("VPN", [vpn], catalogue.arms)
    if vpn == DIRECT:
        raise UsageError("the bare link has no builds", hint="name a VPN, see `tunnelmark list vpns`")
    _check("workload", [each.workload for each in workloads], catalogue.workloads)
    _find(files, profiles, topology)
    tables = [
        _table(
            "[study]",
            name="ab",
            title=f"{vpn}: {labels[0]} and {labels[1]}".translate(_NO_MARKUP),
            description="Written by `tunnelmark ab`.",
            seed=seed,
            blocks=blocks,
            profiles=list(dict.fromkeys(profiles)),
            topologies=[topology],
        ),
        _table("[[arm]]", name=DIRECT),
        *(
            f"{_table('[[arm]]', name=name, vpn=vpn, title=label)}programs = {{ {_inline(programs)} }}\n"
            for name, label, programs in ((OLD, labels[0], old), (NEW, labels[1], new))
        ),
        _table("[[arm]]", name=OLD_AGAIN, same_as=OLD),
        *(_workload(each) for each in workloads),
    ]
    return "\n".join(tables)


def traversal(
    vpns: Sequence[str],
    files: Files,
    catalogue: Catalogue,
    *,
    kinds: Sequence[str] = ALL_KINDS,
    sample: int | None = None,
    topology: str = "behind-nat",
    profile: str = "home-fibre",
    blocks: int = 1,
    seed: int = 1,
    duration: int = 20,
) -> str:
    """Return the TOML text of a study that shows which path VPNs find between two nodes, each behind a router.

    `kinds`: the kinds of routers; the study has a topology for each pair of kinds. Each pair occurs once: both nodes
    start at the same time, so it makes no difference which of the two is behind the first kind.
    `sample`: the number of pairs to draw, by `seed`; None: all. `duration`: seconds of traffic in a trial. The first
    VPN is in the study twice, which shows whether the same path is found again.

    UnknownName if a name does not exist, UsageError if no VPN is named or so many pairs cannot be drawn.
    """
    arms = [vpn for vpn in dict.fromkeys(vpns) if vpn != DIRECT]
    if not arms:
        raise UsageError("there is no VPN to try", hint="name one or more, see `tunnelmark list vpns`")
    _check("VPN", arms, catalogue.arms)
    _check("kind of router", kinds, ALL_KINDS)
    _find(files, (profile,), topology)
    pairs = list(combinations_with_replacement(dict.fromkeys(kinds), 2))
    if sample is not None:
        if not 0 < sample <= len(pairs):
            raise UsageError(
                f"{sample} of {len(pairs)} pairs cannot be drawn", hint=f"name a number from 1 to {len(pairs)}"
            )
        chosen = random.Random(seed).sample(pairs, sample)  # noqa: S311 (a draw that can be repeated)
        pairs = [pair for pair in pairs if pair in chosen]
    named = [JOIN.join((topology, *dict.fromkeys(pair))) for pair in pairs]
    tables = [
        _table(
            "[study]",
            name=TRAVERSAL,
            title=f"Which path {', '.join(arms)} find through routers",
            description="Written by `tunnelmark traversal`.",
            seed=seed,
            blocks=blocks,
            profiles=[profile],
            topologies=named,
        ),
        *(_table("[[arm]]", name=arm) for arm in (DIRECT, *arms)),
        _table("[[arm]]", name=f"{arms[0]}-again", same_as=arms[0]),
        f'[[workload]]\nworkload = "{TRAVERSAL}"\noptions = {{ duration = "{duration} s" }}\n',
    ]
    return "\n".join(tables)


def _check(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    known = set(known)
    for name in names:
        if name not in known:
            raise UnknownName(what, name, known)


def _find(files: Files, profiles: Sequence[str], topology: str) -> None:
    """Raise UnknownName if no file has a profile (also one that is joined by `+`) or the topology."""
    for part in (part for profile in profiles for part in profile.split(JOIN)):
        files.find("profile", part)
    files.find("topology", topology.split(JOIN, maxsplit=1)[0])


def _inline(values: Mapping[str, str]) -> str:
    return ", ".join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values.items())


def _workload(each: ComposedWorkload) -> str:
    options = f"options = {{ {_inline(each.options)} }}\n" if each.options else ""
    return _table("[[workload]]", workload=each.workload) + options


def _table(header: str, **values: str | int | bool | list[str]) -> str:
    # Text, whole numbers, truth and lists of text are written alike in JSON and in TOML.
    return header + "\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
