"""The command `tunnelmark`: its subcommands, how errors are shown, and what the exit code means.

Exit codes: 0 done; 1 the study ran, and a gate or claim failed, or (`ab`) the new build is slower; 2 wrong use or
missing parts; 3 (`ab`) undecided; 70 (EX_SOFTWARE of sysexits.h) a defect of tunnelmark; 130 stopped from the keyboard.
Subcommands are imported when they are called, so that the command starts fast and a shell completes without delay.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import traceback
from collections.abc import Sequence

import click

from tunnelmark import __version__, former_names
from tunnelmark.cli import interrupts
from tunnelmark.errors import TunnelmarkError, UnknownName

_COMMANDS = {
    "run": ("tunnelmark.cli.run", "run", "Run a study, or go on with one that was stopped."),
    "compare": ("tunnelmark.cli.run", "compare", "Compare VPNs with the bare link, without a study file."),
    "ab": ("tunnelmark.cli.ab_command", "ab", "Say whether a new build of a VPN is slower than an old one."),
    "traversal": (
        "tunnelmark.cli.traversal_command",
        "traversal",
        "Try which path VPNs find through address translation and filters.",
    ),
    "repeat": ("tunnelmark.cli.repeat", "repeat", "Run a study several times, and say what holds beyond one run."),
    "merge": ("tunnelmark.cli.repeat", "merge", "Join results of other runs, boots, days and machines."),
    "report": ("tunnelmark.cli.report", "report", "Show results again, and rewrite their report."),
    "query": ("tunnelmark.cli.query_command", "query", "Ask the results of any number of runs in SQL."),
    "history": (
        "tunnelmark.cli.history_command",
        "history",
        "Follow a machine's results over time, and mark changes.",
    ),
    "plan": (
        "tunnelmark.cli.plan_command",
        "plan",
        "Say what a study can find with how many blocks, and what it takes, before it is run.",
    ),
    "study": (
        "tunnelmark.cli.study_command",
        "study",
        "Look at published studies: what they claim, and whether it held in a run.",
    ),
    "list": ("tunnelmark.cli.list", "list_", "List VPNs, arms, workloads, profiles, topologies or studies."),
    "topology": (
        "tunnelmark.cli.topology_command",
        "topology",
        "Look at topologies: which nodes there are, joined how.",
    ),
    "matrix": ("tunnelmark.cli.matrix_command", "matrix", "Compare what the VPNs can do and how they are built."),
    "packages": ("tunnelmark.cli.packages_command", "packages", "List, install and verify the VPNs under test."),
    "check-link": (
        "tunnelmark.cli.link_command",
        "check_link",
        "Measure what a link does, and compare it with its profile.",
    ),
    "doctor": (
        "tunnelmark.cli.doctor_command",
        "doctor",
        "Say whether this machine can run a lab, and what is missing.",
    ),
    "cluster": ("tunnelmark.cli.cluster_command", "cluster", "Spread studies over several machines."),
    "lab": ("tunnelmark.cli.lab_commands", "lab", "Bring up a lab to try things in by hand."),
    "new": ("tunnelmark.cli.new", "new", "Start a new profile, topology, workload, VPN driver or CI workflow."),
    "completion": ("tunnelmark.cli.completion", "completion", "Print the shell's completion script."),
}
"""By name: module, attribute and one line of help. The line is here so that the help is shown without imports."""

_COMPLETING = "_TUNNELMARK_COMPLETE"  # environment variable by which a shell asks (see `completion`)


class _Lazy(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and (now := former_names.COMMANDS.get(args[0])):
            click.echo(f"note: `tunnelmark {args[0]}` is called `tunnelmark {now}` now", err=True)
            args = [now, *args[1:]]
        if args and not args[0].startswith("-") and args[0] not in _COMMANDS:
            raise UnknownName("command", args[0], _COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in _COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # here, because click itself would end the process with 1
            return _silence()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[click.shell_completion.CompletionItem]:
        """Complete the commands without importing them."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            click.shell_completion.CompletionItem(name, help=line)
            for name, (_, _, line) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="tunnelmark")
def tunnelmark() -> None:
    """A laboratory for VPNs.

    Starts real VPN daemons as separate hosts on this machine, drives real traffic through them over links that it
    shapes, compares every one with the bare link in the same run, and says which difference is real.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments`, or with those of this process if it is None. Return the exit code."""
    _hear_warnings()
    with interrupts.heard():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = tunnelmark.main(
            None if arguments is None else list(arguments), prog_name="tunnelmark", standalone_mode=False
        )
        sys.stdout.flush()
    except TunnelmarkError as error:
        error = _reason(error)
        _show(error.message, error.hint)
        return error.exit_code
    except click.NoSuchOption as error:
        _show(f"there is no option {error.option_name}", _nearest(error.possibilities) or _help_of(error.ctx))
        return 2
    except click.exceptions.NoSuchCommand as error:
        _show(
            f"there is no command called {error.command_name!r}", _nearest(error.possibilities) or _help_of(error.ctx)
        )
        return 2
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.UsageError as error:
        _show(_sentence(error.format_message()), _help_of(error.ctx))
        return 2
    except click.ClickException as error:
        _show(_sentence(error.format_message()), "")
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo(interrupts.sentence(), err=True)
        return interrupts.CODE
    except BrokenPipeError:
        return _silence()
    except Exception:
        # Python's own code for an uncaught exception is 1, which says "slower" or "a gate failed" to a script.
        traceback.print_exc()
        _show("this is a defect of tunnelmark itself", "report it with the lines above")
        return os.EX_SOFTWARE
    return code if isinstance(code, int) else 0


class _Warnings(logging.Handler):
    """Prints the warnings that the package logs, in the style of errors; prints nothing while a shell completes."""

    def emit(self, record: logging.LogRecord) -> None:
        if _COMPLETING not in os.environ:
            click.echo(click.style("warning: ", fg="yellow", bold=True) + record.getMessage(), err=True)


def _hear_warnings() -> None:
    log = logging.getLogger("tunnelmark")
    if not any(isinstance(handler, _Warnings) for handler in log.handlers):
        log.addHandler(_Warnings(logging.WARNING))


def _reason(error: TunnelmarkError) -> TunnelmarkError:
    """Return the error because of which a file was left out that seems to define the unknown name, else `error`."""
    registry = sys.modules.get("tunnelmark.registry")
    if registry is None or not isinstance(error, UnknownName):
        return error
    left_out: Sequence[TunnelmarkError] = registry.broken(error.name)
    return left_out[0] if left_out else error


def _silence() -> int:
    """Send output to /dev/null when its reader has gone, and return 0: no error. Else Python complains when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _show(message: str, hint: str) -> None:
    click.echo(click.style("error: ", fg="red", bold=True) + message, err=True)
    if hint:
        click.echo(click.style("hint: ", bold=True) + hint, err=True)


def _nearest(names: Sequence[str] | None) -> str:
    return f"did you mean {' or '.join(sorted(names))}?" if names else ""


def _sentence(text: str) -> str:
    """Return click's message in our style: no capital at the start, no full stop at the end."""
    text = text.strip().rstrip(".")
    return text[:1].lower() + text[1:]


def _help_of(ctx: click.Context | None) -> str:
    return f"see `{ctx.command_path if ctx else 'tunnelmark'} --help`"
