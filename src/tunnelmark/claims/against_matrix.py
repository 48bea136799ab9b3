"""Judges claims about the features of a VPN by the feature matrix, because no run can test them.

A cell of the matrix that rests only on the claim's own source proves nothing for the claim, so it is not used.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping

from tunnelmark.claims.model import Claim, ClaimOutcome, Feature, Judged
from tunnelmark.model.features import Fact
from tunnelmark.plan.files import PACKAGED
from tunnelmark.vpns.feature_matrix import FeatureVerdict, MatrixFile, brief, verdict

OPEN_SOURCE = frozenset({"AGPL-3.0", "Apache-2.0", "BSD-3-Clause", "GPL-2.0", "GPL-3.0", "ISC", "LGPL-3.0", "MIT", "MPL-2.0"})  # fmt: skip
"""Licences of the matrix that the Open Source Initiative has approved, by their SPDX names."""


def compare(claim: Claim, feature: Feature, facts: Mapping[str, Fact] | None = None) -> Judged:
    """Return the verdict on the claim by `facts`, the VPN's row of the matrix by criterion (None: the shipped row).

    It is "undecided" if the VPN has the feature only `partly`, and "not testable" if the matrix has too few facts.
    """
    cells = _shipped(feature.vpn) if facts is None else facts
    known = {key: cells[key] for key in feature.criteria if key in cells and _own(cells[key], feature.cited)}
    said = "; ".join(f"{key}: {fact.value} ({fact.source}, {fact.date})" for key, fact in known.items())
    if isinstance(feature.printed, str):
        if not known:
            return _unknown(claim, feature)
        same = all(brief(fact.value) == feature.printed for fact in known.values())
        return Judged(claim, "held" if same else "did not hold", reason=said)
    words = [_word(key, fact) for key, fact in known.items()]
    found: FeatureVerdict | None = "no" if "no" in words else None
    if found is None:
        if len(known) < len(feature.criteria) or None in words:
            return _unknown(claim, feature)
        found = "partly" if "partly" in words else "yes"
    outcome: ClaimOutcome = (
        "undecided" if found == "partly" else "held" if (found == "yes") == feature.printed else "did not hold"
    )
    return Judged(claim, outcome, reason=said)


def _unknown(claim: Claim, feature: Feature) -> Judged:
    keys = ", ".join(feature.criteria)
    reason = f"of {feature.vpn} the matrix has {keys} not at all, or from this source only"
    return Judged(claim, "not testable", reason=reason)


def _own(fact: Fact, cited: str) -> bool:
    """Return whether a fact of the matrix rests on any source but that of the claim, whose title is `cited`."""
    return any(cited not in part for part in fact.source.split("; "))


def _word(key: str, fact: Fact) -> FeatureVerdict | None:
    if key != "licence":
        return verdict(fact.value)
    if brief(fact.value) not in OPEN_SOURCE:
        return "no"
    return "partly" if "but for" in fact.value else "yes"


@functools.cache
def _shipped(vpn: str) -> Mapping[str, Fact]:
    file = PACKAGED / "matrix" / f"{vpn}.toml"
    row = MatrixFile.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    return {key: Fact(*cell) for key, cell in row.cells.items()}
