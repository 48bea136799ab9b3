"""The one error tree of tunnelmark; every error carries a hint that says what to do.

TunnelmarkError
├── UsageError             the command was used wrongly                          exit 2
│   ├── UnknownName        a name that is in no list, with the nearest ones
│   └── PlanError          a study, profile or topology file: file, key, what would be right
├── MissingPart            root, a device, a program, a package is missing       exit 2
├── LabError               the laboratory itself could not do its work           exit 2
│   └── NodeGone           a node ended while it was needed
├── StoreError             the results could not be written or read              exit 2
│   └── DiskFull           no space left; nothing that was finished is lost
└── TrialError             one trial failed; it is recorded and the study goes on  exit 1
    ├── SetupFailed        a command of the deployment failed
    ├── NotReady           a daemon ran but the overlay never answered
    ├── DaemonDied         a daemon ended while its trial still needed it
    ├── WorkloadFailed     the workload's programs failed or hung
    ├── OutputUnreadable   the workload's output could not be read
    └── TrialVoid          a gate found that the trial does not measure what it says
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


class TunnelmarkError(Exception):
    """Base of all errors; `message` says what is wrong, `hint` what to do about it."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def kind(self) -> str:
        """The name of the class in lower case with dashes, as it is written in results: `daemon-died`."""
        name = type(self).__name__
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


class UsageError(TunnelmarkError):
    """The command line asks for something that does not make sense."""


class UnknownName(UsageError):
    """A name is not known; the hint lists the names nearest to it, or all known names if none is near."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        super().__init__(f"there is no {what} called {name!r}", hint=nearest(name, known))
        self.name = name


class PlanError(UsageError):
    """A plan file is wrong at a certain key.

    `file` is its path. `key` is dotted, with list indices ("" for the whole file). The hint says what would be right.
    """

    def __init__(self, file: str, key: str, problem: str, *, hint: str = "") -> None:
        where = f"{file}: {key}: " if key else f"{file}: "
        super().__init__(where + problem, hint=hint)
        self.file = file
        self.key = key


class MissingPart(TunnelmarkError):
    """Something outside of the project is needed and missing: root, a device, a program or a package."""


class LabError(TunnelmarkError):
    """The laboratory could not make, drive or remove its hosts."""


class NodeGone(LabError):
    """A node's first process ended while the node was still needed."""


class StoreError(TunnelmarkError):
    """Results could not be written or read."""


class DiskFull(StoreError):
    """No space is left for results; finished trials are safe."""


class TrialError(TunnelmarkError):
    """One trial failed; the study records it and goes on."""

    exit_code = 1


class SetupFailed(TrialError):
    """A command of the deployment ended with an error."""


class NotReady(TrialError):
    """The overlay did not answer within the time it was given."""


class DaemonDied(TrialError):
    """A daemon ended while its trial still needed it."""


class WorkloadFailed(TrialError):
    """A program of the workload failed, hung, or could not be started."""


class OutputUnreadable(TrialError):
    """A workload ended without an error, but its output does not have the form that is expected."""


class TrialVoid(TrialError):
    """The trial is void: by the laboratory's fault, it did not measure what it should."""


def plain(error: TunnelmarkError) -> dict[str, str]:
    """Return an error as a dict of texts, which can be sent to another process.

    There, `again` makes the error from it.
    """
    return {"kind": type(error).__name__, "message": error.message, "hint": error.hint}


def again(said: Mapping[str, str]) -> TunnelmarkError:
    """Return the error that `plain` described, with its message and its hint.

    MissingPart, StoreError, DiskFull and UsageError keep their class. An error of any other class becomes a LabError.
    """
    kinds = {each.__name__: each for each in (MissingPart, LabError, StoreError, DiskFull, UsageError)}
    return kinds.get(said["kind"], LabError)(said["message"], hint=said["hint"])


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint: up to 3 known names similar to `name`, all known names if none is similar, or "none is known"."""
    known = list(known)
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(near) + "?"
    return ("known: " + ", ".join(known)) if known else "none is known"
