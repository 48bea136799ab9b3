"""A laboratory for VPNs: real daemons, real workloads, every arm compared with the bare link.

For programs there is `tunnelmark.load(folder)`, which reads results (`tunnelmark.api`); it is imported when it is asked for.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = ["Run", "__version__", "load"]

if TYPE_CHECKING:
    from tunnelmark.api import Run, load


def __getattr__(name: str) -> object:
    """What is imported late (PEP 562): the command starts fast, and a type checker sees it all the same."""
    if name in ("Run", "load"):
        from importlib import import_module

        return getattr(import_module("tunnelmark.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
