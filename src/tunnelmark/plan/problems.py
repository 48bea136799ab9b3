"""Collects the problems of a plan file, in words, and raises them as one `PlanError`.

Errors of tomllib and pydantic are turned into a key, what is wrong there, and what would be right.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tunnelmark.errors import PlanError, nearest

Location = tuple[int | str, ...]
Model = TypeVar("Model", bound=BaseModel)

_TOML_PLACE = re.compile(r"(?P<problem>.*) \((?P<place>at .*)\)", re.DOTALL)


class Problems:
    """The problems of one file, in the order in which they were found."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[tuple[str, str, str]] = []

    def add(self, key: Location, problem: str, hint: str = "") -> None:
        """Note a problem at `key`, and in `hint` what would be right. The same problem is noted only once."""
        if (found := (dotted(key), problem, hint)) not in self._found:
            self._found.append(found)

    def add_invalid(
        self, error: ValidationError, model: type[BaseModel], data: object, key: Location = (), name: str = ""
    ) -> None:
        """Note all errors that pydantic found in `data`, which should fit `model`.

        `key`: where `data` is in the file. `name`: the name of the arm or workload that `data` belongs to; each message
        mentions it. "": a message mentions the `name` of the table in `data` in which the error is, if it has one.
        """
        # Unknown keys first: a misspelt key explains why the right one is missing.
        for detail in sorted(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden"):
            problem, hint = _explain(detail, model)
            whose = name or _whose(data, detail["loc"])
            self.add((*key, *detail["loc"]), problem + (f" (in {whose!r})" if whose else ""), hint)

    def raise_if_any(self) -> None:
        """Raise PlanError for the first problem, if there are any; its message holds all the others too."""
        if not self._found:
            return
        (key, problem, hint), *others = self._found
        if others:  # each with its own hint, so that none comes twice or at the wrong problem
            problem += f" ({hint})" if hint else ""
            problem += f"\nand {len(others)} more:"
            problem += "".join(
                f"\n  {key}: {problem}" + (f" ({hint})" if hint else "") for key, problem, hint in others
            )
            hint = "correct all of them; what is expected is in brackets"
        raise PlanError(self._file, key, problem, hint=hint)


def parse_toml(text: str, file: str) -> dict[str, Any]:
    """Return the tables of a TOML text; PlanError with the line if its syntax is wrong."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _TOML_PLACE.fullmatch(str(error))
        place, problem = (match["place"].removeprefix("at "), match["problem"]) if match else ("", str(error))
        raise PlanError(
            file,
            place,
            "this is not TOML: " + problem[:1].lower() + problem[1:],
            hint="a line is `key = value`, text is in double quotes, see https://toml.io",
        ) from error


def parse(text: str, file: str, model: type[Model]) -> Model:
    """Return the TOML text as a `model`; PlanError with all problems if it does not fit."""
    data = parse_toml(text, file)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = Problems(file)
        problems.add_invalid(error, model, data)
        problems.raise_if_any()
        raise


def checked(
    options: Mapping[str, object], model: type[BaseModel], key: Location, name: str, problems: Problems
) -> BaseModel | None:
    """Return the options as their model; None, with the problems noted, if they do not fit the model.

    `key`: where the table that has the key `options` is in the file. `name`: the arm or workload in the messages.
    """
    try:
        return model.model_validate(options)
    except ValidationError as error:
        problems.add_invalid(error, model, options, (*key, "options"), name)
        return None


def dotted(key: Location) -> str:
    """Return a key as people write it: `arm[2].options.port`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).lstrip(".")


def _explain(detail: ErrorDetails, model: type[BaseModel]) -> tuple[str, str]:
    """Return what is wrong, and what would be right."""
    location = detail["loc"]
    holder = _model_at(model, location[:-1])
    last = location[-1] if location else ""
    if detail["type"] == "extra_forbidden":
        return "there is no such key", nearest(str(last), holder.model_fields if holder else ())
    if detail["type"] == "missing":
        return "is missing", _wanted(holder, last) or "state it"
    if detail["type"] == "value_error":  # from a validator of this project, without pydantic's prefix
        words = str(detail["ctx"]["error"])
    else:
        words = _wanted(holder, last) or detail["msg"].removeprefix("Input ")
    given = detail["input"]
    if isinstance(given, dict | list):
        return "this cannot be used", words
    return f"{given!r} cannot be used", words


def _wanted(holder: type[BaseModel] | None, key: int | str) -> str:
    """Return what a field should be, by its description; "" if it has none."""
    field = holder.model_fields.get(str(key)) if holder else None
    return f"should be {field.description}" if field and field.description else ""


def _model_at(model: type[BaseModel], location: Location) -> type[BaseModel] | None:
    """Return the model that holds the keys at `location` inside of `model`; None if there is none."""
    current: type[BaseModel] | None = model
    for part in location:
        if isinstance(part, str):
            field = current.model_fields.get(part) if current else None
            current = next(_models(field), None) if field else None
    return current


def _models(field: FieldInfo) -> Iterator[type[BaseModel]]:
    """Return the models in a field's type: the type itself, or the one in `list[Table]`."""
    parts: Iterable[object] = (field.annotation, *get_args(field.annotation))
    return (part for part in parts if isinstance(part, type) and issubclass(part, BaseModel))


def _whose(data: object, location: Location) -> str:
    """Return the name of the table that holds the location in a list, so that no one must count tables; "" if none."""
    for part in location:
        try:
            data = data[part]  # type: ignore[index]  # what cannot be followed has no name
        except (KeyError, IndexError, TypeError):
            return ""
        if isinstance(part, int) and isinstance(data, dict):
            name = data.get("name", data.get("workload"))
            return name if isinstance(name, str) else ""
    return ""


def unique(names: Iterable[str], key: Location, problems: Problems, *, field: str = "") -> None:
    """Note each name that occurs a second time, at its index in the list at `key`.

    `field`: if the list holds tables, the key under which each table has its name; "" if the list holds the names.
    """
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            where = (*key, place, field) if field else (*key, place)
            problems.add(where, f"{name!r} is here a second time", "give each a name of its own")
