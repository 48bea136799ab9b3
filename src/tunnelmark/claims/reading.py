"""Reads files of claims: turns TOML into the data of `model`, and checks every reference."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from tunnelmark.claims import statements
from tunnelmark.claims.claim_names import ClaimNames
from tunnelmark.claims.claims_schema import ClaimsTable, ClaimTable, ConclusionTable, DifferenceTable
from tunnelmark.claims.model import (
    Apart,
    Cell,
    Claim,
    ClaimsFile,
    Conclusion,
    Condition,
    Feature,
    Printed,
    Quantity,
    Statement,
)
from tunnelmark.claims.originals import Publication, SourceDifference
from tunnelmark.errors import UnknownName, nearest
from tunnelmark.plan.files import PACKAGED, read_text
from tunnelmark.plan.problems import Location, Problems, parse, unique
from tunnelmark.plan.study_arms import DIRECT

FOLDER = PACKAGED / "claims"


def names() -> tuple[str, ...]:
    """Return the names of the sources whose claims are part of tunnelmark, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))


@functools.cache
def of_study(study: str) -> ClaimsFile | None:
    """Return the claims of the source that the study repeats, in whole or in part, with the study's names.

    None if it repeats none.
    """
    found = (read(FOLDER / f"{name}.toml") for name in names())
    return next((each.as_in(study) for each in found if study in (each.study, *each.also)), None)


def find(name: str) -> ClaimsFile:
    """Return the claims of the source called `name`, or of the source that the study `name` repeats.

    Raises UnknownName if there is neither.
    """
    if name in names():
        return read(FOLDER / f"{name}.toml")
    if (found := of_study(name)) is not None:
        return found
    raise UnknownName("source of claims", name, names())


def read(file: Path) -> ClaimsFile:
    """Read the claims of a file. Raises PlanError, with all errors of the file, if there are any."""
    text = read_text(file)
    table = parse(text, str(file), ClaimsTable)
    problems = Problems(str(file))
    quantities = {name: Quantity(name, **each.model_dump()) for name, each in table.quantity.items()}
    conditions = {name: Condition(name, **each.model_dump()) for name, each in table.condition.items()}
    for name, quantity in quantities.items():
        if quantity.study and quantity.study not in table.source.also:
            problems.add(
                ("quantity", name, "study"),
                f"{quantity.study!r} is not among the studies that repeat parts of the source",
                "add it to `also` of [source]",
            )
    for study in table.part:
        if study not in table.source.also:
            problems.add(
                ("part", study), f"{study!r} is not among the studies of `also`", nearest(study, table.source.also)
            )
    names = ClaimNames({**table.arms, **table.absent}, quantities, conditions, problems)
    printed = _printed(table, names, _digits(text))
    claims: list[Claim] = []
    for place, each in enumerate(table.claim):
        if names.check_claim(each, ("claim", place)):
            claims += _features(each, table) or _claims(each, names, printed, table.source.within, ("claim", place))
    unique((claim.id for claim in claims), ("claim",), problems)
    names.check("arm", table.other_paths, ("other_paths",))
    for study, part in table.part.items():
        names.check("arm", part.arms, ("part", study, "arms"))
        names.check("condition", part.profiles, ("part", study, "profiles"))
        names.check("condition", part.topologies, ("part", study, "topologies"))
    claims = [_where_paths_are_other(claim, table, quantities) for claim in claims]
    for place, claim in enumerate(table.claim):
        for study in claim.studies:
            if study not in table.part:
                problems.add(("claim", place, "studies"), f"{study!r} has no [part]", nearest(study, table.part))
    names.check("arm", table.there.versions, ("there", "versions"))
    differences = tuple(_difference(each, names, ("difference", place)) for place, each in enumerate(table.difference))
    conclusions = tuple(
        _conclusion(each, claims, problems, ("conclusion", place)) for place, each in enumerate(table.conclusion)
    )
    problems.raise_if_any()
    source = table.source
    return ClaimsFile(
        name=file.stem,
        source=Publication(source.authors, source.year, source.title, source.form),
        study=source.study,
        also=tuple(source.also),
        there=table.there,
        differences=differences,
        arms=table.arms,
        absent=table.absent,
        quantities=quantities,
        conditions=conditions,
        printed=printed,
        claims=tuple(claims),
        conclusions=conclusions,
        parts=table.part,
    )


def _where_paths_are_other(claim: Claim, table: ClaimsTable, quantities: Mapping[str, Quantity]) -> Claim:
    """Return the claim with its cells of arms whose packets took other paths in the source; sizes are the same on all.

    A claim of which nothing is left without them, but the bare link, is untestable.
    """
    cells = {cell for each in claim.statements for cell in each.cells if table.arms.get(cell.arm) != DIRECT}
    found = {cell for cell in cells if cell.arm in table.other_paths and quantities[cell.quantity].kind != "size"}
    if not found:
        return claim
    claim = replace(claim, elsewhere=frozenset(found))
    if claim.of_a_lab().statements:
        return claim
    return replace(claim, untestable=claim.untestable or table.other_paths[next(iter(found)).arm])


def _conclusion(table: ConclusionTable, claims: list[Claim], problems: Problems, key: Location) -> Conclusion:
    """Return the conclusion; what it rests on without there being such a claim is added to the problems."""
    for name in table.claims:
        if not any(Conclusion("", "", (name,)).has(claim) for claim in claims):
            problems.add(
                (*key, "claims"), f"there is not a claim {name!r}", nearest(name, [each.id for each in claims])
            )
    return Conclusion(table.says, table.place, tuple(table.claims))


def _difference(table: DifferenceTable, names: ClaimNames, key: Location) -> SourceDifference:
    """Return the difference, with its arms called as in the study."""
    known = names.check("arm", table.arms, (*key, "arms"))
    names.check("condition", table.conditions, (*key, "conditions"))
    names.check("quantity", table.quantities, (*key, "quantities"))
    return SourceDifference(
        topic=table.topic,
        says=table.says,
        studies=tuple(table.studies),
        workloads=tuple(table.workloads),
        arms=tuple(names.arms[arm] for arm in table.arms) if known else (),
        conditions=tuple(table.conditions),
        quantities=tuple(table.quantities),
        length=table.length,
        lacks=tuple(table.lacks),
        machine=tuple(table.machine),
        makes=table.makes,
        decides=table.decides,
    )


def _digits(text: str) -> list[dict[str, list[object]]]:
    """Return the rows of the tables as they are written: a number does not show how many digits were printed."""
    tables = tomllib.loads(text, parse_float=str).get("table", [])
    return [each["rows"] for each in tables]


def _printed(table: ClaimsTable, names: ClaimNames, written: list[dict[str, list[object]]]) -> dict[Cell, Printed]:
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
    claim: ClaimTable, names: ClaimNames, printed: Mapping[Cell, Printed], within: float, key: Location
) -> list[Claim]:
    """Return one claim, or one for each of its arms and conditions; [] if it is wrong, and the problems say why."""
    try:
        if claim.test == "none":
            return [_one(claim, (), claim.says)]
        if claim.test in ("ratio", "difference", "value"):
            return _effects(claim, names, printed, within)
        return _orders(claim, names, printed)
    except ValueError as error:
        names.problems.add(key, f"{error} (in {claim.id!r})")
        return []


def _features(claim: ClaimTable, table: ClaimsTable) -> list[Claim]:
    """Return one claim for each VPN and criterion that are compared; [] if the claim is not about features."""
    found = []
    for vpn, cells in claim.features.items():
        for (criterion, keys), cell in zip(claim.criteria.items(), cells, strict=True):
            if cell == "":
                continue
            value = cell if isinstance(cell, str) else "yes" if cell else "no"
            says = claim.says.format(vpn=table.called.get(vpn, vpn), criterion=criterion, value=value)
            feature = Feature(vpn, tuple(keys), cell, table.source.title)
            name = f"{claim.id}.{vpn}" + (f".{_slug(criterion)}" if len(claim.criteria) > 1 else "")
            found.append(
                Claim(
                    name,
                    claim.place,
                    says,
                    (),
                    untestable=claim.untestable,
                    contradicted=claim.contradicted,
                    feature=feature,
                )
            )
    return found


def _effects(claim: ClaimTable, names: ClaimNames, printed: Mapping[Cell, Printed], within: float) -> list[Claim]:
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


def _orders(claim: ClaimTable, names: ClaimNames, printed: Mapping[Cell, Printed]) -> list[Claim]:
    """Return the claims of an order, of groups or of pairs: one for each condition.

    An order along conditions or quantities gives one claim for each arm. Raises ValueError if a claim has no statement.
    """
    found = []
    along_arms = claim.along == "arms" or claim.test != "order"
    fixed = claim.conditions if along_arms else claim.arms
    for each in fixed:
        quantity = names.quantities[claim.quantity or claim.quantities[0]]
        rows: tuple[Statement | Apart, ...]
        cells: tuple[Cell, ...] = ()
        if claim.test == "groups":
            rows = statements.groups(
                [[Cell(quantity.name, each, arm) for arm in group] for group in claim.groups],
                printed,
                quantity,
                claim.margin,
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
        if claim.alone:
            found.extend(_parts(claim, rows, says, name))
        else:
            found.append(_one(claim, rows, says, name, largest_first if not claim.over else ()))
    return found


def _parts(claim: ClaimTable, rows: Sequence[Statement | Apart], says: str, name: str) -> list[Claim]:
    """Return the claim without the arms of `alone`, and a claim for each of them, of the parts that state something."""
    of_arm = {arm: tuple(row for row in rows if any(cell.arm == arm for cell in row.cells)) for arm in claim.alone}
    rest = tuple(row for row in rows if not any(row in taken for taken in of_arm.values()))
    without = " and ".join(claim.alone)
    found = [_one(claim, rest, f"{says} (All but {without}.)", name)] if rest else []
    parts = ((arm, taken) for arm, taken in of_arm.items() if taken)
    return found + [_one(claim, taken, f"{says} ({arm}.)", f"{name}.{_slug(arm)}") for arm, taken in parts]


def _one(
    claim: ClaimTable, rows: tuple[Statement | Apart, ...], says: str, name: str = "", order: tuple[Cell, ...] = ()
) -> Claim:
    return Claim(
        name or claim.id,
        claim.place,
        says,
        rows,
        order,
        untestable=claim.untestable,
        studies=tuple(claim.studies),
        usual=claim.usual,
        contradicted=claim.contradicted,
    )


def _slug(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def _text(claim: ClaimTable, statement: Statement, quantity: Quantity) -> str:
    """Return the printed effect as text: "80 %" or "1.25 times" for a ratio, else with its unit; "?" without any."""
    value = statement.printed
    if value is None:
        return "?"
    if claim.test == "ratio":
        return f"{100 * value:.3g} %" if value < 1 else f"{value:.3g} times" if value < 1000 else f"{value:,.0f} times"
    if claim.test != "difference":
        return f"{value:{_shown(value)}} {quantity.unit}".strip()
    return f"{value:+{_shown(value)}} {'points' if quantity.unit == '%' else quantity.unit}".strip()


def _shown(value: float) -> str:
    """Return the format of a value: four significant digits, but never a power of ten."""
    return ".0f" if abs(value) >= 1000 else ".4g"
