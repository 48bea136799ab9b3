"""Converts what collectors saw on a host to a JSON object and back, and joins the raw files of several hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tunnelmark.model.metrics import Sample
from tunnelmark.run.collection import CollectorFinding
from tunnelmark.run.collectors import collectors
from tunnelmark.run.collectors.base import Collected


def plain(finding: CollectorFinding) -> dict[str, Any]:
    """Return a collector's finding as a JSON object."""
    seen = finding.seen
    return {
        "collector": finding.collector.name,
        "samples": [[sample.metric, sample.value, sample.time] for sample in seen.samples],
        "notes": dict(seen.notes),
        "cpu": seen.cpu,
        "limits": dict(seen.limits),
        "sums": dict(seen.sums),
        "of_each_host": {name: list(values) for name, values in seen.of_each_host.items()},
        "cost": finding.cost,
        "refused": finding.refused,
    }


def read(said: Mapping[str, Any]) -> CollectorFinding:
    """Return the finding that `plain` has converted to a JSON object."""
    samples = tuple(Sample(*each) for each in said["samples"])
    of_each_host = {name: tuple(values) for name, values in said["of_each_host"].items()}
    seen = Collected(samples, said["notes"], said["cpu"], said["limits"], said["sums"], of_each_host)
    return CollectorFinding(collectors()[said["collector"]], seen, said["cost"], said["refused"])


def joined(one: str, other: str) -> str:
    """Join the texts of a file that two hosts have written, each about its own nodes.

    JSON objects become one object; other texts are put one after the other.
    """
    try:
        return json.dumps(_joined(json.loads(one), json.loads(other)), indent=1) + "\n"
    except ValueError:
        return one + other


def _joined(one: Any, other: Any) -> Any:
    match one, other:
        case dict(), dict():
            same = {name: _joined(value, other[name]) for name, value in one.items() if name in other}
            return {**one, **other, **same}
        case list(), list():
            both = [*one, *other]
            timed = all(isinstance(each, dict) and "time" in each for each in both)
            return sorted(both, key=lambda each: each["time"]) if timed else both
        case ((int() | float()), (int() | float())):
            return one + other
        case _:
            return one
