"""The command `traversal`: tries which path VPNs find between two nodes, for every pair of kinds of routers."""

from __future__ import annotations

from pathlib import Path

import click

from tunnelmark import registry
from tunnelmark.cli import binary_overrides, param_types, retry_options
from tunnelmark.cli.measuring import study_of
from tunnelmark.cli.run_options import RunOptions, dry_option, json_option
from tunnelmark.plan import compose
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import parse_study
from tunnelmark.plan.routers import ALL_KINDS


@click.command()
@click.argument("vpns", nargs=-1, required=True, type=param_types.VPN)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(ALL_KINDS),
    help="Kind of router before each node; repeatable, each two are tried [all].",
)
@click.option("--sample", type=click.IntRange(min=1), help="Try so many of the pairs only, drawn by the seed.")
@param_types.once(
    "--profile", default="home-fibre", type=param_types.PROFILE, help="What the link between the routers does."
)
@click.option(
    "--seconds", type=click.IntRange(min=2), default=20, show_default=True, help="How long a path is waited for."
)
@click.option("--blocks", type=int, default=1, show_default=True, help="How often each pair is tried.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the order, and of the sample.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results [results/traversal-TIME].")
@retry_options.options
@binary_overrides.option
@json_option
@dry_option
def traversal(
    vpns: tuple[str, ...],
    kinds: tuple[str, ...],
    sample: int | None,
    profile: str,
    seconds: int,
    blocks: int,
    seed: int,
    out: Path | None,
    no_repeat: bool,
    no_wait: bool,
    json_: bool,
    dry_run: bool,
) -> int:
    """Try which path VPNS find between two nodes behind routers: direct, through a relay, or none, and when.

    A server that both nodes reach runs what a VPN needs in the middle. What is said is what was seen on the underlay.
    A run that was stopped goes on with `tunnelmark run --resume DIR`.
    """
    files, catalogue = Files.standard(), registry.catalogue()
    files, profile = files.with_paths("profile", profile)
    text = compose.traversal(
        vpns,
        files,
        catalogue,
        kinds=kinds or ALL_KINDS,
        sample=sample,
        profile=profile,
        blocks=blocks,
        seed=seed,
        duration=seconds,
    )
    options = RunOptions(dry_run, json_, wait=not no_wait, repeat=not no_repeat, measure_first=False)
    return study_of(options.of(parse_study(text, compose.TRAVERSAL, files, catalogue)), out, options)
