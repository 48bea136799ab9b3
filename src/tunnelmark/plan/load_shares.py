"""Finds the options of a workload that are a share of the link's rate, and refuses them on links without a rate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from pydantic import BaseModel

from tunnelmark.plan.fields import OfLink
from tunnelmark.plan.model import Profile, WorkloadUse
from tunnelmark.plan.problems import Problems
from tunnelmark.units import Share

_OF_LINK = get_args(OfLink)[0]  # the type that Pydantic keeps for an `OfLink` field


def shares(options: BaseModel) -> dict[str, Share]:
    """Return the options of a workload that are a share of the link's rate, by name."""
    values = {
        name: getattr(options, name)
        for name, field in type(options).model_fields.items()
        if _takes_shares(field.annotation)
    }
    return {name: value for name, value in values.items() if isinstance(value, Share)}


def _takes_shares(annotation: object) -> bool:
    """Return whether a field with that annotation is an `OfLink`, or an `OfLink | None`."""
    return annotation == _OF_LINK or OfLink in get_args(annotation)


def have_rates(measured: Iterable[tuple[int, WorkloadUse, Profile]], problems: Problems) -> None:
    """Note in `problems` each use that asks for a share of the link's rate over a profile without a rate.

    The number is the use's place in the file. PlanError if `problems` then holds any problem, also one that was noted
    before.
    """
    for place, use, profile in measured:
        for name, share in use.shares.items() if profile.rate is None else ():
            problems.add(
                ("workload", place, "options", name),
                f"{share} of what? The profile {profile.name!r} has no rate (in {use.name!r})",
                f"state a rate such as '100 Mbit/s', or join one: '{profile.name}+fast-ethernet'",
            )
    problems.raise_if_any()
