"""What the programs of workloads print as JSON: the base class of its parts, and the error if it has another form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tunnelmark.errors import OutputUnreadable

FormT = TypeVar("FormT", bound=BaseModel)


class ProgramOutput(BaseModel):
    """The base class of all parts of a program's JSON; fields that are not read are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


@contextmanager
def understood(what: str, hint: str) -> Iterator[None]:
    """Turn Pydantic's error into OutputUnreadable: `WHAT that is not understood: FIELD: reason`."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise OutputUnreadable(
            f"{what} that is not understood: " + (f"{where}: " if where else "") + first["msg"], hint=hint
        ) from error


def document(text: str, who: str, form: type[FormT], hint: str) -> FormT:
    """Return the JSON that a program (`who`) printed, parsed as `form`.

    Raises OutputUnreadable if it printed nothing, or something of another form.
    """
    if not text.strip():
        raise OutputUnreadable(f"{who} printed nothing", hint="see its stderr in the raw output")
    with understood(f"{who} printed JSON", hint):
        return form.model_validate_json(text)
