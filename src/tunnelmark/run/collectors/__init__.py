"""Collectors: each measures what a trial cost its nodes (CPU, memory, packets outside the tunnel); see `base`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from tunnelmark.run.collectors.base import Collector


@functools.cache
def collectors() -> Mapping[str, Collector]:
    """Return all collectors by name: the `COLLECTOR` of each module of this package that defines one."""
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    found = (module.COLLECTOR for module in modules if hasattr(module, "COLLECTOR"))
    return MappingProxyType({collector.name: collector for collector in found})


def light() -> tuple[str, ...]:
    """Return the names of the collectors that a study uses if it names none."""
    return tuple(name for name, collector in collectors().items() if collector.light)
