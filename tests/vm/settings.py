"""The settings in which netem and the emulator's model of it are compared, each written for both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

COUNT = 10_000  # probes a setting
MORE = 40_000  # where losses alone tell a model that is slightly wrong, so that it is told in every run and not in most


@dataclass(frozen=True)
class Setting:
    """netem's options as `tc` takes them, and the same as stages of docs/emulator.md.

    `interval_us` and `bytes`: of the probes, Ethernet header included. `ks`: delays are independent of each other, so
    that a Kolmogorov-Smirnov test may be asked. `slack`: packets that a microsecond here or there may decide, where a
    full queue drops.
    """

    name: str
    netem: str
    stages: dict[str, Any]
    interval_us: int = 200
    bytes: int = 100
    limit: int = 100_000
    ks: bool = False
    slack: int = 0
    count: int = field(default=COUNT)

    def config(self) -> dict[str, Any]:
        """The emulator's configuration."""
        direction = {"name": self.name, "model": "netem", "limit_packets": self.limit, "stages": self.stages}
        return {"seed": 1, "directions": [direction]}

    def for_guest(self) -> dict[str, Any]:
        """What the guest's script needs."""
        names = ("name", "netem", "interval_us", "bytes", "limit", "count")
        return {name: getattr(self, name) for name in names} | {"drain_s": 1}


def _chance(probability: float, correlation: float = 0) -> dict[str, float]:
    return {"probability": probability, "correlation": correlation}


def _loss(probability: float, correlation: float = 0) -> dict[str, Any]:
    return {"kind": "independent", **_chance(probability, correlation)}


def _jitter(jitter_us: float, distribution: str = "uniform", correlation: float = 0) -> dict[str, Any]:
    return {"jitter_us": jitter_us, "distribution": distribution, "correlation": correlation}


def _delayed(delay_ms: float, **stages: Any) -> dict[str, Any]:
    return {"delay_us": delay_ms * 1000, **stages}


CALIBRATION = Setting("delay", "delay 10ms", _delayed(10))
"""Measures what the guest itself adds: netem decides nothing at random here."""

SETTINGS = (
    CALIBRATION,
    Setting("loss", "loss 2%", {"loss": _loss(0.02)}, count=MORE),
    Setting("loss-correlated-25", "loss 10% 25%", {"loss": _loss(0.1, 0.25)}, count=MORE),
    Setting("loss-correlated-50", "loss 30% 50%", {"loss": _loss(0.3, 0.5)}),
    Setting(
        "loss-gilbert-elliott",
        "loss gemodel 1% 10% 70% 0.1%",
        {"loss": {"kind": "gilbert-elliott", "p": 0.01, "r": 0.1, "h": 0.3, "k": 0.999}},
        count=MORE,
    ),
    Setting(
        "loss-four-state",
        "loss state 2% 20% 40% 10% 0.5%",
        {"loss": {"kind": "four-state", "p13": 0.02, "p31": 0.2, "p32": 0.4, "p23": 0.1, "p14": 0.005}},
    ),
    Setting("duplicate", "duplicate 3%", {"duplication": _chance(0.03)}),
    # tc (iproute2 6.1 and the versions around it) sends the correlation of `duplicate` only if another option has a
    # correlation too. Alone it is ignored, and `tc qdisc show` does not show it.
    Setting("duplicate-alone", "duplicate 30% 40%", {"duplication": _chance(0.3)}),
    Setting("duplicate-correlated", "delay 0ms 0ms 1% duplicate 30% 40%", {"duplication": _chance(0.3, 0.4)}),
    Setting("duplicate-and-loss", "duplicate 20% loss 20%", {"duplication": _chance(0.2), "loss": _loss(0.2)}),
    Setting("corrupt", "corrupt 3%", {"corruption": _chance(0.03)}),
    Setting("reorder", "delay 10ms reorder 5%", _delayed(10, reordering=_chance(0.05))),
    Setting("reorder-correlated", "delay 10ms reorder 25% 50%", _delayed(10, reordering=_chance(0.25, 0.5))),
    Setting("reorder-gap", "delay 10ms reorder 50% gap 5", _delayed(10, reordering=_chance(0.5) | {"gap": 5})),
    Setting("uniform", "delay 10ms 3ms", _delayed(10, jitter=_jitter(3000)), ks=True),
    Setting("uniform-correlated", "delay 10ms 3ms 50%", _delayed(10, jitter=_jitter(3000, "uniform", 0.5)), ks=True),
    Setting("normal", "delay 20ms 4ms distribution normal", _delayed(20, jitter=_jitter(4000, "normal")), ks=True),
    Setting(
        "normal-correlated",
        "delay 20ms 4ms 75% distribution normal",
        _delayed(20, jitter=_jitter(4000, "normal", 0.75)),
        ks=True,
    ),
    Setting("pareto", "delay 20ms 4ms distribution pareto", _delayed(20, jitter=_jitter(4000, "pareto")), ks=True),
    Setting(
        "paretonormal-correlated",
        "delay 20ms 4ms 25% distribution paretonormal",
        _delayed(20, jitter=_jitter(4000, "paretonormal", 0.25)),
        ks=True,
    ),
    Setting(
        "rate-full-queue",
        "delay 5ms rate 20mbit",
        _delayed(5, rate={"rate_bps": 20_000_000}),
        interval_us=310,  # while a frame takes 400
        bytes=1000,
        limit=50,
        slack=20,
    ),
    Setting(
        "rate-normal-loss",
        "delay 30ms 1ms 25% distribution normal loss 0.5% rate 20mbit",
        _delayed(30, jitter=_jitter(1000, "normal", 0.25), loss=_loss(0.005), rate={"rate_bps": 20_000_000}),
        interval_us=450,
        bytes=1000,
    ),
    Setting(
        "all-low",
        "delay 2ms 2ms loss 0.25% reorder 0.5% 25%",
        _delayed(2, jitter=_jitter(2000), loss=_loss(0.0025), reordering=_chance(0.005, 0.25)),
        ks=True,
    ),
    Setting(
        "all-high",
        "delay 6ms 15ms loss 2.5% duplicate 1% reorder 5%",
        _delayed(
            6,
            jitter=_jitter(15_000),  # below zero for 30 % of the packets: at once
            loss=_loss(0.025),
            duplication=_chance(0.01),
            reordering=_chance(0.05),
        ),
        ks=True,
    ),
)
