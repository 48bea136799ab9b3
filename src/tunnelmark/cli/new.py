"""`tunnelmark new vpn`: writes a driver to start from, and says what to do with it."""

from __future__ import annotations

import os
from pathlib import Path

import click

import tunnelmark
from tunnelmark import registry
from tunnelmark.errors import StoreError, UsageError
from tunnelmark.plan.files import PATH_VARIABLE


@click.group()
def new() -> None:
    """Start something new."""


@new.command()
@click.argument("name")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder that gets vpns/NAME.py; named in TUNNELMARK_PATH, it is found.  [default: the current folder]",
)
def vpn(name: str, folder: Path | None) -> None:
    """Write a driver for the VPN NAME, which runs as it is and is then filled in."""
    from tunnelmark.vpns.scaffold import scaffold

    base = (folder or Path.cwd()).resolve()
    file = base / "vpns" / f"{name.replace('-', '_').replace('.', '_')}.py"
    text = scaffold(name)  # checks the name first
    if name in registry.vpns():
        raise UsageError(f"there is a VPN called {name} already", hint="choose another name")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x") as new_file:
            new_file.write(text)
    except FileExistsError:
        raise UsageError(f"{file} exists already", hint="choose another name, or another folder with --dir") from None
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}", hint="choose a folder with --dir") from error
    click.echo(f"wrote {file}")
    click.echo("next:")
    found_anyway = {str(Path(tunnelmark.__file__).parent), *os.environ.get(PATH_VARIABLE, "").split(os.pathsep)}
    if str(base) not in found_anyway:
        click.echo(f"  export {PATH_VARIABLE}={base}")
    click.echo(f"  fill in {file.name} (docs/add-a-vpn.md explains each field)")
    click.echo(f"  make contract VPN={name}      the suite that every driver passes")
    click.echo(f"  tunnelmark compare {name}     compare it with the bare link")
