"""Recorded output of real programs (see outputs/README.md), and the nodes that workloads run between."""

from ipaddress import ip_address
from pathlib import Path

from tunnelmark.workloads.base import Endpoints, Reading

OUTPUTS = Path(__file__).parent / "outputs"


def recorded(name: str) -> dict[str, str]:
    """What every program of that run printed, by the program's name."""
    return {file.stem: file.read_text(encoding="utf-8") for file in (OUTPUTS / name).iterdir()}


def ends(source: str = "10.0.0.1", target: str = "10.0.0.2", socket_buffer: int = 4 << 20) -> Endpoints:
    return Endpoints("a", "b", ip_address(source), ip_address(target), socket_buffer)


def whole(reading: Reading) -> dict[str, float]:
    """The values for the whole window, by metric."""
    return {sample.metric: sample.value for sample in reading.samples if sample.time is None}


def series(reading: Reading, metric: str) -> list[tuple[float, float]]:
    """The values of one metric with their times."""
    return [(s.time, s.value) for s in reading.samples if s.metric == metric and s.time is not None]
