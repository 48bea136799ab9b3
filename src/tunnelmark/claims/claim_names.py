"""Checks that a claim names only arms, quantities and conditions of its file, and that its test fits them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tunnelmark.claims.claims_schema import ClaimTable
from tunnelmark.claims.model import AS_IT_IS, Condition, Quantity
from tunnelmark.claims.run_statistics import SHARES, SPREADS
from tunnelmark.errors import nearest
from tunnelmark.plan.files import PACKAGED
from tunnelmark.plan.problems import Location, Problems
from tunnelmark.vpns.feature_matrix import CRITERIA


class ClaimNames:
    """The names of arms, quantities and conditions that a file defines; wrong uses of them are added to `problems`."""

    def __init__(
        self,
        arms: Mapping[str, str],
        quantities: Mapping[str, Quantity],
        conditions: Mapping[str, Condition],
        problems: Problems,
    ) -> None:
        self.arms, self.quantities, self.conditions, self.problems = arms, quantities, conditions, problems

    def check(self, kind: str, used: Iterable[str], key: Location) -> bool:
        """Return whether all names in `used` are known; add unknown ones to the problems. `kind`: such as "arm"."""
        known: Mapping[str, object] = {
            "arm": self.arms,
            "quantity": self.quantities,
            "condition": self.conditions,
        }[kind]
        unknown = [name for name in used if name not in known]
        for name in unknown:
            self.problems.add(key, f"this file has no {kind} called {name!r}", nearest(name, known))
        return not unknown

    def check_claim(self, claim: ClaimTable, key: Location) -> bool:
        """Return whether a claim has only names that the file defines, and all that its test needs.

        What is wrong is added to the problems. `key`: the claim's place in the file.
        """
        if claim.test == "none":
            if not claim.untestable:
                self.problems.add((*key, "untestable"), f"is missing (in {claim.id!r})", "say why it cannot be tested")
            return bool(claim.untestable)
        if claim.test == "feature":
            return self._check_features(claim, key)
        arms = [
            *claim.arms,
            *(arm for group in claim.groups for arm in group),
            *(arm for pair in claim.pairs for arm in pair),
        ]
        overs = [each.model_dump() for each in claim.over]
        fine = [
            self.check(
                "quantity", [claim.quantity] if claim.along != "quantities" else claim.quantities, (*key, "quantity")
            ),
            self.check("condition", claim.conditions, (*key, "conditions")),
            self.check("arm", arms, (*key, "arms")),
            self.check("arm", claim.alone, (*key, "alone")),
            *(
                self.check(kind, [each[kind]] if each[kind] is not None else [], (*key, "over"))
                for each in overs
                for kind in each
            ),
        ]
        if not claim.conditions or not arms:
            self.problems.add(key, f"names no condition or no arm (in {claim.id!r})", "state `conditions` and `arms`")
            return False
        if not all(fine):
            return False
        return self._alone_fits(claim, arms, key) and self._fits(claim, key)

    def _alone_fits(self, claim: ClaimTable, arms: Sequence[str], key: Location) -> bool:
        """Return whether the claim compares each arm of `alone` with others, so that its part can be taken out."""
        parted = claim.test in ("groups", "apart") or (claim.test == "order" and claim.along == "arms")
        wrong = [arm for arm in claim.alone if not parted or arm not in arms]
        for arm in wrong:
            said = f"has {arm!r}, which is in no group, pair or order of arms of {claim.id!r}"
            self.problems.add((*key, "alone"), said, "name arms that the claim compares with others, or leave it out")
        return not wrong

    def _check_features(self, claim: ClaimTable, key: Location) -> bool:
        """Return whether the matrix has these criteria and rows, and each row has a value for every criterion."""
        criteria = [criterion.key for criterion in CRITERIA]
        rows = [file.stem for file in (PACKAGED / "matrix").glob("*.toml")]
        wrong = [name for each in claim.criteria.values() for name in each if name not in criteria]
        for name in wrong:
            self.problems.add((*key, "criteria"), f"{name!r} is not a criterion of the matrix", nearest(name, criteria))
        for name, cells in claim.features.items():
            if name not in rows:
                wrong.append(name)
                self.problems.add((*key, "features"), f"{name!r} is not a row of the matrix", nearest(name, rows))
            if len(cells) != len(claim.criteria):
                wrong.append(name)
                hint = f"should have {len(claim.criteria)}, one for each criterion"
                self.problems.add((*key, "features", name), f"has {len(cells)} cells", hint)
        return not wrong

    def _fits(self, claim: ClaimTable, key: Location) -> bool:
        """Return whether the test suits its quantities: figures of other hardware are compared in their study only."""
        quantities = [self.quantities[name] for name in (claim.quantities or [claim.quantity])]
        made = {each.statistic for each in quantities}
        if made & set(SHARES) and claim.test != "value":
            self.problems.add(
                (*key, "test"), f"compares shares of trials with one another (in {claim.id!r})", "should be 'value'"
            )
            return False
        if made & set(SPREADS) and claim.test in ("value", "difference", "apart"):
            self.problems.add(
                (*key, "test"), f"takes a spread over runs otherwise than by its ratio (in {claim.id!r})", "should be 'ratio' or 'order'"
            )  # fmt: skip
            return False
        kinds = {each.kind for each in quantities}
        if claim.test == "value" and not all(each.kind in AS_IT_IS or each.timers for each in quantities):
            self.problems.add(
                (*key, "test"),
                f"compares a {', '.join(sorted(kinds))} of other hardware as it is (in {claim.id!r})",
                "should be 'ratio', 'difference' or 'order'",
            )
            return False
        if claim.test == "difference" and "rate" in kinds:
            self.problems.add(
                (*key, "test"), f"takes a difference of rates of other hardware (in {claim.id!r})", "should be 'ratio'"
            )
            return False
        if claim.test in ("ratio", "difference") and not claim.over:
            self.problems.add(
                (*key, "over"), f"is missing (in {claim.id!r})", 'should be a list such as [{ arm = "Internal" }]'
            )
            return False
        return True
