"""A laboratory for VPNs: real daemons, real workloads, every arm compared with the bare link.

Python programs read results with `tunnelmark.load(folder)` (see `tunnelmark.api`). The module `tunnelmark.api` is
imported only when a program first uses `load` or `Run`.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = ["Run", "__version__", "load"]

if TYPE_CHECKING:
    from tunnelmark.api import Run, load


def __getattr__(name: str) -> object:
    """Import `Run` or `load` at its first use (PEP 562), so that the command starts fast; type checkers know both."""
    if name in ("Run", "load"):
        from importlib import import_module

        return getattr(import_module("tunnelmark.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
