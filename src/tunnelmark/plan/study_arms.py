"""Makes the arms of a study from their tables: VPN, options, twin, underlay and kernel settings of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from pydantic import BaseModel

from tunnelmark.errors import nearest
from tunnelmark.plan.catalogue import Catalogue
from tunnelmark.plan.model import Arm, Cascade, InnerNetwork, Topology
from tunnelmark.plan.problems import Location, Problems, checked, unique
from tunnelmark.plan.study_schema import ArmTable, InnerTable
from tunnelmark.plan.sysctls import sysctls_of

DIRECT = "direct"
"""The `vpn` of an arm without a VPN: the bare link, which every block must have."""

ANCHOR = "anchor"
"""The `vpn` of our reference tunnel, which does the least that a user-space VPN must (`vpns.anchor`)."""

OLD, NEW, OLD_AGAIN = "old", "new", "old-again"
"""The names of the arms in a study of two builds of one VPN: both builds, and the twin of the old one."""


def arms_of(
    tables: list[ArmTable],
    catalogue: Catalogue,
    settings: Mapping[str, str],
    inner: InnerTable | None,
    problems: Problems,
) -> tuple[Arm, ...]:
    """Return the arms of a study. An arm with a problem is left out, and the problem is noted.

    `settings`: sysctls of all arms. `inner`: the inner network of each arm that states no other; None: it has none.
    """
    unique([table.name for table in tables], ("arm",), problems, field="name")
    arms: dict[str, Arm] = {}
    models: dict[str, BaseModel] = {}
    for index, table in enumerate(tables):
        key: Location = ("arm", index)
        twin = arms.get(table.same_as) if table.same_as is not None else None
        if table.same_as is not None and twin is None:
            earlier = [other.name for other in tables[:index]]
            if table.same_as not in earlier:  # otherwise that arm has a problem of its own, which is noted
                problems.add(
                    (*key, "same_as"),
                    f"no earlier arm is called {table.same_as!r} (in {table.name!r})",
                    nearest(table.same_as, earlier),
                )
            continue
        inherited = twin or Arm(table.name, table.name)
        vpn = inherited.vpn if table.vpn is None else table.vpn
        options = inherited.options if table.options is None else table.options
        normalised = table.normalised or (twin is not None and twin.normalised)
        underlay = table.underlay or inherited.underlay
        sysctls = inherited.sysctls if twin is not None else settings
        if table.sysctls is not None:
            sysctls = {**settings, **sysctls_of(table.sysctls, (*key, "sysctls"), problems)}
        on_top = table.inner or (None if twin is not None else inner)
        network = on_top.network() if on_top is not None else inherited.inner
        cascade = table.cascade or inherited.cascade
        behind = table.behind_gateways or (twin is not None and twin.behind_gateways)
        programs = inherited.programs if table.programs is None else table.programs
        if vpn in catalogue.variants:
            vpn, own = catalogue.variants[vpn]
            options = {**own, **options}
        if vpn not in catalogue.vpns:
            where = (*key, "name" if table.vpn is None else "vpn")
            problems.add(where, f"there is no VPN called {vpn!r}", nearest(vpn, catalogue.arms))
            continue
        if underlay == "ipv6" and vpn not in catalogue.ipv6:
            where, hint = (*key, "underlay"), "leave it out, or take " + " or ".join(sorted(catalogue.ipv6))
            problems.add(where, f"{vpn} has no driver for an IPv6 underlay", hint)
            continue
        if cascade is not None:
            _cascade(vpn, cascade, underlay, normalised, catalogue, key, problems)
        if behind:
            _behind_gateways(vpn, cascade, underlay, normalised, network, catalogue, key, problems)
        _programs(vpn, programs, catalogue, key, problems)
        model = checked(options, catalogue.vpns[vpn], key, table.name, problems)
        if model is None:
            continue
        if twin is not None and (vpn, model, normalised, underlay, sysctls, network, cascade, behind, programs) != (
            twin.vpn,
            models[twin.name],
            twin.normalised,
            twin.underlay,
            twin.sysctls,
            twin.inner,
            twin.cascade,
            twin.behind_gateways,
            twin.programs,
        ):
            problems.add(
                (*key, "same_as"),
                f"{table.name!r} is not the same as {twin.name!r}: its vpn or options differ, or its sysctls, inner network, cascade, gateways or programs",
                "leave out vpn and options, they are taken from the arm it names",
            )
            continue
        arms[table.name] = Arm(
            table.name,
            vpn,
            options,
            table.same_as,
            normalised,
            underlay,
            sysctls,
            network,
            cascade,
            behind,
            programs,
            table.title or inherited.title,
        )
        models[table.name] = model
    if all(table.name in arms for table in tables):
        _controls(arms, problems)
    return tuple(arms.values())


def on_chains(measured: Iterable[tuple[int, Arm, Topology]], problems: Problems) -> None:
    """Note each arm that cannot run on a topology on which it is measured; the number is the arm's place in the file.

    A cascade needs a topology with nodes that forward, and gateways need at least two such nodes.
    """
    for place, arm, topology in measured:
        if arm.behind_gateways and len(topology.forwards) < 2:
            problems.add(
                ("arm", place, "behind_gateways"),
                f"{arm.name} is a VPN of gateways, and {topology.name} has no two nodes that forward",
                "take a chain such as two-gateways, or leave `behind_gateways` out",
            )
        if arm.cascade and not topology.forwards:
            problems.add(
                ("arm", place, "cascade"),
                f"{arm.name} is a cascade, and no node of {topology.name} forwards for the others",
                "take a chain such as chain-1 or chain-3, or leave `cascade` out",
            )


def _cascade(
    vpn: str, cascade: Cascade, underlay: str, normalised: bool, catalogue: Catalogue, key: Location, problems: Problems
) -> None:
    """Note why an arm cannot be a cascade on any topology."""
    where = (*key, "cascade")
    if vpn == DIRECT:
        problems.add(where, "the bare link has no tunnels, so it cannot be a cascade", "leave it out: direct is routed")
    elif vpn not in catalogue.cascades:
        known = " or ".join(sorted(catalogue.cascades))
        problems.add(where, f"{vpn} has no driver for a cascade", f"leave it out, or take {known}")
    if underlay == "ipv6":
        problems.add(where, "a cascade runs over an IPv4 underlay only", "leave `cascade` or `underlay` out")
    if normalised and cascade == "nested":
        problems.add(
            where,
            "nested tunnels have the MTU that is left of the one around each, so they cannot be normalised",
            'leave `normalised` out, or take cascade = "series"',
        )


def _behind_gateways(
    vpn: str,
    cascade: Cascade | None,
    underlay: str,
    normalised: bool,
    inner: InnerNetwork | None,
    catalogue: Catalogue,
    key: Location,
    problems: Problems,
) -> None:
    """Note why an arm's VPN cannot run on gateways on any topology."""
    where = (*key, "behind_gateways")
    if vpn == DIRECT:
        problems.add(where, "the bare link has no gateways", "leave it out: direct is routed")
    elif vpn not in catalogue.cascades:
        known = " or ".join(sorted(catalogue.cascades))
        problems.add(where, f"{vpn} has no driver that leads to hosts behind a node", f"leave it out, or take {known}")
    for name, stated in (("cascade", cascade), ("normalised", normalised), ("inner", inner)):
        if stated:
            problems.add(where, f"the hosts behind gateways have no tunnel, so there is no {name!r}", "leave one out")
    if underlay == "ipv6":
        problems.add(where, "gateways run over an IPv4 underlay only", "leave one of the two out")


def _programs(vpn: str, programs: Mapping[str, str], catalogue: Catalogue, key: Location, problems: Problems) -> None:
    """Note programs that the VPN does not have, and paths that are not absolute or end in another name than theirs."""
    known = catalogue.programs.get(vpn, frozenset())
    for program, path in programs.items():
        where = (*key, "programs", program)
        if program not in known:
            problems.add(where, f"{vpn} has no program called {program!r}", nearest(program, known))
        elif not path.startswith("/") or PurePosixPath(path).name != program:
            problems.add(where, f"{path!r} is not a whole path that ends in {program}", f"such as /opt/mine/{program}")


def _controls(arms: Mapping[str, Arm], problems: Problems) -> None:
    """Note if a study lacks the bare link, with which arms are compared, or an A/A pair, which shows the noise."""
    if not any(arm.vpn == DIRECT for arm in arms.values()):
        problems.add(
            ("arm",),
            "no arm is the bare link, with which every block compares",
            'add [[arm]] with name = "direct"',
        )
    if not any(arm.same_as for arm in arms.values()):
        problems.add(
            ("arm",),
            "no arm is the same as another, so nothing shows how far equal arms differ",
            'add [[arm]] with name = "direct-again" and same_as = "direct"',
        )
