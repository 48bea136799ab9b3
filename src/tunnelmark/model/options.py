"""The base of what VPNs and workloads let a study choose."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """Base of a driver's or workload's options: unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


OptionsT = TypeVar("OptionsT", bound=Options)
"""The options of one driver, or of one workload."""
