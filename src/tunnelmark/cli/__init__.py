"""The command `tunnelmark`; each subcommand has a module of its own, which is imported when it is called."""

from tunnelmark.cli.command import main

__all__ = ["main"]
