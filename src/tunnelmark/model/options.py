"""Defines the base class of the options that VPNs and workloads let a study choose."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """Base class of a driver's or workload's options: unknown keys are refused, types are strict, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


OptionsT = TypeVar("OptionsT", bound=Options)
"""Type variable for the options of one driver or one workload."""
