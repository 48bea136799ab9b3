"""Reads files of claims: from TOML to `model`'s data, with every reference checked."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

from tunnelmark.claims import statements
from tunnelmark.claims.claims_schema import ClaimsTable, ClaimTable, DifferenceTable, SourceTable
from tunnelmark.claims.model import (
    AS_IT_IS,
    Apart,
    Cell,
    Claim,
    ClaimsFile,
    Condition,
    Feature,
    Printed,
    Quantity,
    Statement,
)
from tunnelmark.claims.originals import Publication, Setup, SourceDifference
from tunnelmark.claims.run_statistics import SHARES, SPREADS
from tunnelmark.errors import UnknownName, nearest
from tunnelmark.plan.files import PACKAGED, read_text
from tunnelmark.plan.problems import Location, Problems, parse, unique
from tunnelmark.vpns.feature_matrix import CRITERIA

FOLDER = PACKAGED / "claims"


def names() -> tuple[str, ...]:
    """The sources that tunnelmark brings claims of, by name, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))


@functools.cache
def of_study(study: str) -> ClaimsFile | None:
    """The claims of which a study of that name repeats all or some; None where it repeats none."""
    found = (read(FOLDER / f"{name}.toml") for name in names())
    return next((each for each in found if study in (each.study, *each.also)), None)


def find(name: str) -> ClaimsFile:
    """The claims of that source, or of the study of that name; UnknownName where there are none."""
    if name in names():
        return read(FOLDER / f"{name}.toml")
    if (found := of_study(name)) is not None:
        return found
    raise UnknownName("source of claims", name, names())


def read(file: Path) -> ClaimsFile:
    """The claims of a file; PlanError with all that is wrong in it."""
    text = read_text(file)
    table = parse(text, str(file), ClaimsTable)
    problems = Problems(str(file))
    quantities = {name: Quantity(name, **each.model_dump()) for name, each in table.quantity.items()}
    conditions = {name: Condition(name, **each.model_dump()) for name, each in table.condition.items()}
    names = _Names({**table.arms, **table.absent}, quantities, conditions, problems)
    printed = _printed(table, names, _digits(text))
    claims: list[Claim] = []
    for place, each in enumerate(table.claim):
        if names.check_claim(each, ("claim", place)):
            claims += _features(each, table.source) or _claims(
                each, names, printed, table.source.within, ("claim", place)
            )
    unique((claim.id for claim in claims), ("claim",), problems)
    names.check("arm", table.there.versions, ("there", "versions"))
    differences = tuple(_difference(each, names, ("difference", place)) for place, each in enumerate(table.difference))
    problems.raise_if_any()
    source = table.source
    return ClaimsFile(
        name=file.stem,
        source=Publication(source.authors, source.year, source.title, source.form),
        study=source.study,
        also=tuple(source.also),
        there=Setup(**table.there.model_dump()),
        differences=differences,
        arms=table.arms,
        absent=table.absent,
        quantities=quantities,
        conditions=conditions,
        printed=printed,
        claims=tuple(claims),
    )


def _difference(table: DifferenceTable, names: _Names, key: Location) -> SourceDifference:
    """A difference with its arms by their names in the study."""
    known = names.check("arm", table.arms, (*key, "arms"))
    names.check("condition", table.conditions, (*key, "conditions"))
    return SourceDifference(
        topic=table.topic,
        says=table.says,
        studies=tuple(table.studies),
        workloads=tuple(table.workloads),
        arms=tuple(names.arms[arm] for arm in table.arms) if known else (),
        conditions=tuple(table.conditions),
        length=table.length,
        one_machine=table.one_machine,
    )


class _Names:
    """The names that a file gives to things, and what is wrong with those it uses."""

    def __init__(
        self,
        arms: Mapping[str, str],
        quantities: Mapping[str, Quantity],
        conditions: Mapping[str, Condition],
        problems: Problems,
    ) -> None:
        self.arms, self.quantities, self.conditions, self.problems = arms, quantities, conditions, problems

    def check(self, kind: str, used: Iterable[str], key: Location) -> bool:
        """Whether all these names are known; a problem for each that is not."""
        known: Mapping[str, object] = {
            "arm": self.arms,
            "quantity": self.quantities,
            "condition": self.conditions,
        }[kind]
        unknown = [name for name in used if name not in known]
        for name in unknown:
            self.problems.add(key, f"{name!r} is no {kind} of this file", nearest(name, known))
        return not unknown

    def check_claim(self, claim: ClaimTable, key: Location) -> bool:
        """Whether all that a claim names is known, and its test has what it needs."""
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
        return self._fits(claim, key)

    def _check_features(self, claim: ClaimTable, key: Location) -> bool:
        """Whether the matrix has these criteria and rows, and each row a cell for every criterion."""
        criteria = [criterion.key for criterion in CRITERIA]
        rows = [file.stem for file in (PACKAGED / "matrix").glob("*.toml")]
        wrong = [name for each in claim.criteria.values() for name in each if name not in criteria]
        for name in wrong:
            self.problems.add((*key, "criteria"), f"{name!r} is no criterion of the matrix", nearest(name, criteria))
        for name, cells in claim.features.items():
            if name not in rows:
                wrong.append(name)
                self.problems.add((*key, "features"), f"{name!r} is no row of the matrix", nearest(name, rows))
            if len(cells) != len(claim.criteria):
                wrong.append(name)
                hint = f"should have {len(claim.criteria)}, one for each criterion"
                self.problems.add((*key, "features", name), f"has {len(cells)} cells", hint)
        return not wrong

    def _fits(self, claim: ClaimTable, key: Location) -> bool:
        """Whether a test may be made of such a quantity: figures of other hardware are compared within their own study."""
        made = {self.quantities[name].statistic for name in (claim.quantities or [claim.quantity])}
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
        kinds = {self.quantities[name].kind for name in (claim.quantities or [claim.quantity])}
        if claim.test == "value" and not kinds <= set(AS_IT_IS):
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


def _digits(text: str) -> list[dict[str, list[object]]]:
    """The rows of the tables as they are written: a number that 12.0 becomes does not tell how many digits were printed."""
    tables = tomllib.loads(text, parse_float=str).get("table", [])
    return [each["rows"] for each in tables]


def _printed(table: ClaimsTable, names: _Names, written: list[dict[str, list[object]]]) -> dict[Cell, Printed]:
    found: dict[Cell, Printed] = {}
    for place, each in enumerate(table.table):
        key: Location = ("table", place)
        names.check("quantity", [each.quantity], (*key, "quantity"))
        names.check("condition", each.conditions, (*key, "conditions"))
        names.check("arm", each.rows, (*key, "rows"))
        for arm, row in each.rows.items():
            if len(row) != len(each.conditions):
                names.problems.add(
                    (*key, "rows", arm),
                    f"has {len(row)} values",
                    f"should have {len(each.conditions)}, one for each condition",
                )
                continue
            for condition, value, digits in zip(each.conditions, row, written[place][arm], strict=True):
                cell = Cell(each.quantity, condition, arm)
                if cell in found and found[cell].value != value:
                    names.problems.add(
                        (*key, "rows", arm),
                        f"is printed as {found[cell].value:g} elsewhere ({cell})",
                        "give each value once",
                    )
                if not math.isnan(value):
                    found[cell] = Printed(cell, value, each.place, len(str(digits).partition(".")[2]))
    return found


def _claims(
    claim: ClaimTable, names: _Names, printed: Mapping[Cell, Printed], within: float, key: Location
) -> list[Claim]:
    """One claim, or one for each of its arms and conditions."""
    try:
        if claim.test == "none":
            return [_one(claim, (), claim.says)]
        if claim.test in ("ratio", "difference", "value"):
            return _effects(claim, names, printed, within)
        return _orders(claim, names, printed)
    except ValueError as error:
        names.problems.add(key, f"{error} (in {claim.id!r})")
        return []


def _features(claim: ClaimTable, source: SourceTable) -> list[Claim]:
    """One claim for each cell that is compared."""
    found = []
    for vpn, cells in claim.features.items():
        for (criterion, keys), cell in zip(claim.criteria.items(), cells, strict=True):
            if cell == "":
                continue
            value = cell if isinstance(cell, str) else "yes" if cell else "no"
            says = claim.says.format(vpn=vpn, criterion=criterion, value=value)
            feature = Feature(vpn, tuple(keys), cell, source.title)
            name = f"{claim.id}.{vpn}" + (f".{_slug(criterion)}" if len(claim.criteria) > 1 else "")
            found.append(Claim(name, claim.place, says, (), contradicted=claim.contradicted, feature=feature))
    return found


def _effects(claim: ClaimTable, names: _Names, printed: Mapping[Cell, Printed], within: float) -> list[Claim]:
    cells = [Cell(claim.quantity, condition, arm) for condition, arm in product(claim.conditions, claim.arms)]
    if claim.together:
        return [_one(claim, tuple(statements.effect(claim, cell, printed, within) for cell in cells), claim.says)]
    found = []
    for cell in cells:
        statement = statements.effect(claim, cell, printed, within)
        parts = (
            claim.id,
            *([_slug(cell.arm)] if len(claim.arms) > 1 else []),
            *([_slug(cell.condition)] if len(claim.conditions) > 1 else []),
        )
        says = claim.says.format(
            arm=cell.arm,
            condition=names.conditions[cell.condition].title,
            value=_text(claim, statement, names.quantities[cell.quantity]),
        )
        found.append(_one(claim, (statement,), says, ".".join(parts)))
    return found


def _orders(claim: ClaimTable, names: _Names, printed: Mapping[Cell, Printed]) -> list[Claim]:
    """Orders along arms are one claim for each condition, those along conditions or quantities one for each arm."""
    found = []
    along_arms = claim.along == "arms" or claim.test != "order"
    fixed = claim.conditions if along_arms else claim.arms
    for each in fixed:
        quantity = names.quantities[claim.quantity or claim.quantities[0]]
        rows: tuple[Statement | Apart, ...]
        cells: tuple[Cell, ...] = ()
        if claim.test == "groups":
            rows = statements.groups(
                [[Cell(quantity.name, each, arm) for arm in group] for group in claim.groups], printed, quantity
            )
        elif claim.test == "apart":
            rows = statements.apart(
                [(Cell(quantity.name, each, one), Cell(quantity.name, each, other)) for one, other in claim.pairs],
                claim.differ,
            )
        else:
            if along_arms:
                cells = tuple(Cell(quantity.name, each, arm) for arm in claim.arms)
            elif claim.along == "conditions":
                cells = tuple(Cell(quantity.name, condition, each) for condition in claim.conditions)
            else:
                cells = tuple(Cell(name, claim.conditions[0], each) for name in claim.quantities)
            rows = statements.order(cells, printed, quantity, claim.margin, claim.over)
        if not rows:
            raise ValueError("says nothing that could be false: no two of its places are further apart than the margin")
        title = names.conditions[each].title if along_arms else ""
        says = claim.says.format(arm="" if along_arms else each, condition=title, value="")
        name = claim.id if len(fixed) == 1 else f"{claim.id}.{_slug(each)}"
        largest_first = cells if quantity.better == "higher" else cells[::-1]
        found.append(_one(claim, rows, says, name, largest_first if not claim.over else ()))
    return found


def _one(
    claim: ClaimTable, rows: tuple[Statement | Apart, ...], says: str, name: str = "", order: tuple[Cell, ...] = ()
) -> Claim:
    return Claim(name or claim.id, claim.place, says, rows, order, claim.untestable, claim.contradicted)


def _slug(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def _text(claim: ClaimTable, statement: Statement, quantity: Quantity) -> str:
    """The printed effect as people write it."""
    value = statement.printed
    if value is None:
        return "?"
    if claim.test == "ratio":
        return f"{100 * value:.3g} %" if value < 1 else f"{value:.3g} times"
    sign = "+" if claim.test == "difference" else ""
    return f"{value:{sign}.4g} {quantity.unit}".strip()
