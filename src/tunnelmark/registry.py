"""Knows every VPN and workload by name: those of the package, and those in folders named by TUNNELMARK_PATH.

A module in `tunnelmark.vpns` that defines `DRIVER`, or in `tunnelmark.workloads` that defines `WORKLOAD`,
is found without being listed anywhere. TUNNELMARK_PATH holds folders, separated by colons, whose
subfolders `vpns/` and `workloads/` hold such modules as plain files. An extra file that is broken is left out with a
warning: a half-written driver must not keep anyone from measuring tinc. UsageError if TUNNELMARK_PATH names a path that
is not a folder.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import logging
import os
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from pydantic import ValidationError

from tunnelmark.errors import UnknownName, UsageError
from tunnelmark.host import paths
from tunnelmark.host.programs import Requirement
from tunnelmark.model.features import Fact
from tunnelmark.model.options import Options
from tunnelmark.plan.catalogue import Catalogue
from tunnelmark.plan.files import PACKAGED, PATH_VARIABLE, Files
from tunnelmark.run.collectors import collectors
from tunnelmark.vpns.base import Driver
from tunnelmark.vpns.feature_matrix import MatrixFile, MatrixRow, rows
from tunnelmark.workloads.base import Workload

_Kind = TypeVar("_Kind", Driver[Any], Workload[Any])

_log = logging.getLogger(__name__)
_broken: dict[Path, UsageError] = {}


@functools.cache
def vpns() -> Mapping[str, Driver[Any]]:
    """Return every driver by name, the bare link (`direct`) first. Extra files that are broken are left out."""
    found = _all("vpns", "DRIVER", Driver)
    first = {"direct": found["direct"]} if "direct" in found else {}
    return MappingProxyType(first | found)


@functools.cache
def workloads() -> Mapping[str, Workload[Any]]:
    """Return every workload by name. Extra files that are broken are left out."""
    return MappingProxyType(_all("workloads", "WORKLOAD", Workload))


def vpn(name: str) -> Driver[Any]:
    """Return the driver of a VPN by its name.

    UnknownName if no VPN has this name. If an extra file that is left out as broken seems to define the VPN, the
    UsageError of that file is raised instead.
    """
    try:
        return vpns()[name]
    except KeyError:
        raise _unknown("VPN", name, vpns()) from None


def arms() -> Mapping[str, tuple[Driver[Any], Mapping[str, object]]]:
    """Return every named arm with its driver and options: each VPN with default options, followed by its variants.

    UsageError if two VPNs use one name.
    """
    found: dict[str, tuple[Driver[Any], Mapping[str, object]]] = {}
    for driver in vpns().values():
        named: dict[str, Mapping[str, object]] = {driver.name: {}, **driver.variants}
        for name, options in named.items():
            if name in found or (name in vpns() and name != driver.name):
                raise UsageError(f"two VPNs have an arm called {name!r}", hint=f"rename the variant of {driver.name}")
            found[name] = (driver, options)
    return MappingProxyType(found)


def arm(name: str) -> tuple[Driver[Any], Options]:
    """Return the driver and the checked options of a named arm.

    UnknownName if no arm has this name. If an extra file that is left out as broken seems to define the arm, the
    UsageError of that file is raised instead.
    """
    known = arms()
    if name not in known:
        raise _unknown("VPN", name, known)
    driver, options = known[name]
    return driver, driver.options.model_validate(options)


def matrix() -> tuple[MatrixRow, ...]:
    """Return the feature matrix: a row for every VPN that has a driver, then a row for every VPN that has none.

    The package comes with measured facts of arms. If an arm was measured on this machine (`measured_file`), these facts
    replace all measured facts of that arm from the package.
    UsageError if a file in a folder `matrix/` is not a row of the matrix.
    """
    files: dict[str, MatrixFile] = {}
    for file in sorted(path for folder in Files.standard().folders for path in (folder / "matrix").glob("*.toml")):
        try:
            files[file.stem] = MatrixFile.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
        except (tomllib.TOMLDecodeError, ValidationError) as error:
            raise UsageError(f"{file} is not a row of the matrix: {error}", hint="see docs/matrix.md") from error
    measured: dict[str, dict[str, Fact]] = {}
    for path in (PACKAGED / "matrix" / "measured.json", measured_file()):
        if path.is_file():
            for name, cells in json.loads(path.read_text(encoding="utf-8")).items():
                measured[name] = {key: Fact(**cell) for key, cell in cells.items()}
    return rows(vpns(), files, measured)


def measured_file() -> Path:
    """Return the path of the file to which `tunnelmark matrix --measure` writes what it measured on this machine.

    The file is in the user's data folder (`host.paths.data`), and does not exist before the first measurement.
    """
    return paths.data("measured.json")


def workload(name: str) -> Workload[Any]:
    """Return a workload by its name.

    UnknownName if no workload has this name. If an extra file that is left out as broken seems to define the workload,
    the UsageError of that file is raised instead.
    """
    try:
        return workloads()[name]
    except KeyError:
        raise _unknown("workload", name, workloads()) from None


def broken(name: str = "") -> tuple[UsageError, ...]:
    """Return the errors of the extra files that were left out.

    With a `name`, only the errors of files that seem to define a VPN or a workload of that name are returned: the file
    has that name, or its text has the name in quotes.
    """
    quoted = re.compile(rf"""["']{re.escape(name)}["']""")
    return tuple(
        error
        for file, error in _broken.items()
        if not name or file.stem.replace("_", "-") == name or quoted.search(file.read_text(errors="replace"))
    )


def _unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a name that is not known.

    If a file that was left out seems to define it, that file's error.
    """
    return next(iter(broken(name)), UnknownName(what, name, known))


def catalogue() -> Catalogue:
    """Return the names and options of all VPNs, workloads and collectors, against which a plan file is checked."""
    return Catalogue(
        vpns={name: driver.options for name, driver in vpns().items()},
        variants={name: (driver.name, options) for name, (driver, options) in arms().items() if name != driver.name},
        ipv6=frozenset(name for name, driver in vpns().items() if driver.ipv6),
        cascades=frozenset(name for name, driver in vpns().items() if driver.cascades),
        programs={
            name: frozenset(driver.programs).union(*(build.programs for build in driver.builds.values()))
            for name, driver in vpns().items()
        },
        workloads={name: kind.options for name, kind in workloads().items()},
        collectors={name: collector.light for name, collector in collectors().items()},
    )


def vpn_part(driver: Driver[Any]) -> Requirement:
    """Return what must be installed to run a VPN with its default options."""
    return driver.part(driver.options())


def parts() -> dict[str, Requirement]:
    """Return what must be installed to run each named arm, by the name of the arm."""
    return {name: driver.part(driver.options.model_validate(options)) for name, (driver, options) in arms().items()}


def _all(stage: str, attribute: str, kind: type[_Kind]) -> dict[str, _Kind]:
    found: dict[str, _Kind] = {}
    origins: dict[str, str] = {}
    for origin, module in _modules(stage):
        thing = getattr(module, attribute, None)
        if thing is None:
            continue
        if not isinstance(thing, kind):
            wrong = UsageError(
                f"{origin}: {attribute} is a {type(thing).__name__}, not a {kind.__name__}",
                hint=f"see docs/add-a-{'vpn' if stage == 'vpns' else 'workload'}.md",
            )
        elif thing.name in found:
            wrong = UsageError(
                f"{origin}: the name {thing.name!r} is taken by {origins[thing.name]}",
                hint=f"choose another name for {attribute}",
            )
        else:
            found[thing.name], origins[thing.name] = thing, origin
            continue
        _leave_out(Path(origin), wrong)
    return found


def _modules(stage: str) -> Iterator[tuple[str, ModuleType]]:
    """Yield each module of `tunnelmark.STAGE` with its dotted name, then each extra file as a module with its path.

    An extra file that cannot be loaded is left out. UsageError if TUNNELMARK_PATH names a path that is not a folder.
    """
    package = importlib.import_module(f"tunnelmark.{stage}")
    for name in sorted(module.name for module in pkgutil.iter_modules(package.__path__)):
        if name != "base" and not name.startswith("_"):
            yield f"tunnelmark.{stage}.{name}", importlib.import_module(f"tunnelmark.{stage}.{name}")
    for folder in filter(None, os.environ.get(PATH_VARIABLE, "").split(os.pathsep)):
        base = Path(folder).expanduser()
        if not base.is_dir():
            raise UsageError(f"{PATH_VARIABLE} names {folder}, which is not a folder", hint="correct or unset it")
        for file in sorted((base / stage).glob("*.py")):
            try:
                yield str(file), _load(file, f"tunnelmark_extra.{stage}.{file.stem}")
            except UsageError as error:
                _leave_out(file, error)


def _leave_out(file: Path, error: UsageError) -> None:
    """Note that an extra file is broken, and warn. The error is raised if it is in a module of the package itself."""
    if file.suffix != ".py":
        raise error
    _broken[file] = error
    _log.warning("%s: left out (%s)", error.message, error.hint)


def _load(file: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} cannot be read as Python", hint=f"remove it from {PATH_VARIABLE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(
            f"{file} cannot be loaded: {type(error).__name__}: {error}",
            hint=f"correct the file, or take its folder out of {PATH_VARIABLE}",
        ) from error
    return module
