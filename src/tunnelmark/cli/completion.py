"""`tunnelmark completion`: prints the script by which a shell completes commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash   tunnelmark completion bash >~/.local/share/bash-completion/completions/tunnelmark
    zsh    tunnelmark completion zsh >"${fpath[1]}/_tunnelmark"
    fish   tunnelmark completion fish >~/.config/fish/completions/tunnelmark.fish

    Then start a new shell. The names of VPNs, studies, profiles, workloads, results, labs and their nodes complete as well.
    """  # noqa: D301 (click's mark for lines that stay as they are)
    kind = get_completion_class(shell)
    assert kind is not None  # the choices above are click's own shells
    click.echo(kind(ctx.find_root().command, {}, "tunnelmark", "_TUNNELMARK_COMPLETE").source())
